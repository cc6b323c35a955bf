"""The app of a worker in a process of its own."""

import os

from celery import Celery

from orchestrator import Orchestrator
from tests.acceptance.bad_input import flows  # noqa: F401 - defines what the worker runs

app = Celery("exact", broker=os.environ["BROKER_URL"])
app.conf.orchestrator_database_url = os.environ["DATABASE_URL"]
durable = Orchestrator(app)
