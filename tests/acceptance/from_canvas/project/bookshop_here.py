"""The bookshop on the services of a test run."""

import os

from bookshop.celery import app

app.conf.update(
    broker_url=os.environ["BROKER_URL"],
    orchestrator_database_url=os.environ["DATABASE_URL"],
    # A killed worker is missed after seconds, so that the test does not take a minute.
    orchestrator_liveness_interval=0.5,
    orchestrator_liveness_timeout=3,
    worker_prefetch_multiplier=1,
)
