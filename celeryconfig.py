"""Settings of the stand-alone app (`celery -A orchestrator ...`), from the environment; the compose file sets them."""

import os

broker_url = os.environ.get("BROKER_URL", "memory://")
broker_connection_retry_on_startup = True
if broker_url.startswith("memory:"):
    broker_transport_options = {"polling_interval": 0.002}
if database_url := os.environ.get("ORCHESTRATOR_DATABASE_URL"):
    orchestrator_database_url = database_url

# Modules that hold workflows and activities, separated by commas.
include = [module for module in os.environ.get("ORCHESTRATOR_INCLUDE", "").split(",") if module]

# Delivery that loses nothing; `celery -A orchestrator workflow doctor` looks at it.
task_default_queue = os.environ.get("ORCHESTRATOR_QUEUE", "celery")
worker_prefetch_multiplier = 1
worker_cancel_long_running_tasks_on_connection_loss = True
worker_send_task_events = True
task_send_sent_event = True
