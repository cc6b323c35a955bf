"""The project's Celery app, as in Celery's own guide, and one line more."""

import os

from celery import Celery

from orchestrator import Orchestrator

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")

app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
durable = Orchestrator(app)
