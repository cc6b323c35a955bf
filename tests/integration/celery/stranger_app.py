"""A worker's app that shares the database and the broker, and knows none of the shop's activities."""

import os

from celery import Celery

from orchestrator import Orchestrator

app = Celery("stranger", broker=os.environ.get("BROKER_URL", "memory://"))
app.conf.orchestrator_database_url = os.environ.get("DATABASE_URL", "sqlite://")
app.conf.broker_connection_retry_on_startup = True
durable = Orchestrator(app)
