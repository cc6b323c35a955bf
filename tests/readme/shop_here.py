"""The README's application on the services of a test run."""

import os

from shop.celery import app

app.conf.update(broker_url=os.environ["BROKER_URL"], orchestrator_database_url=os.environ["DATABASE_URL"])
