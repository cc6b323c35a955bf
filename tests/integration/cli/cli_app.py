"""The app that the command line's tests run on, configured by the environment."""

import os

from celery import Celery

from orchestrator import Orchestrator
from tests.integration.cli import cli_flows  # noqa: F401 - defines what the app runs

app = Celery("cli_app", broker=os.environ.get("BROKER_URL", "memory://"))
app.conf.update(
    broker_connection_retry_on_startup=True,
    worker_cancel_long_running_tasks_on_connection_loss=True,
    worker_hijack_root_logger=False,
)
if "DATABASE_URL" in os.environ:
    app.conf.orchestrator_database_url = os.environ["DATABASE_URL"]
durable = Orchestrator(app)
