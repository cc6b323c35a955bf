"""The same app with a queue that takes five messages and refuses the sixth."""

from __future__ import annotations

from kombu import Queue

from tests.chaos.chaos_app import app

NARROW = {"x-max-length": 5, "x-overflow": "reject-publish"}
app.conf.task_queues = [Queue("narrow", routing_key="narrow", queue_arguments=NARROW)]
