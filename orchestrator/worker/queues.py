"""The housekeeping queue: what beat sends for the sweep, consumed by every worker without asking."""

from __future__ import annotations

from typing import Any

from celery import Celery
from kombu import Queue

from orchestrator.transport.celery import SWEEP_TASK

BEAT_ENTRY = "orchestrator-sweep"
"""Name of the sweep's entry in the beat schedule."""

_KEPT = 10
"""Ticks that wait at most, where the broker can bound a queue: a late tick does all the work of the missed ones."""


def housekeeping_queue(app: Celery) -> Queue:
    """Returns the queue, named after the app's default queue so that apps on one broker do not mix."""
    name = f"{app.conf.task_default_queue}.housekeeping"
    return Queue(name, exchange=app.amqp.default_exchange, routing_key=name, max_length=_KEPT)


def beat_entry(app: Celery, interval: float) -> dict[str, Any]:
    """Returns the sweep's entry in the beat schedule.

    Args:
        app: The app.
        interval: Seconds between two ticks.
    """
    return {
        "task": SWEEP_TASK,
        "schedule": interval,
        "options": {
            "queue": housekeeping_queue(app).name,
            "serializer": "json",
            "ignore_result": True,
            "delivery_mode": 1,
        },
    }
