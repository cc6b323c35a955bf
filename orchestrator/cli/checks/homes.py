"""Which queues the code of this process uses, as messages to it are routed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator.activity.definition import registry as activities
from orchestrator.runtime.registry import default_registry
from orchestrator.transport.celery import CeleryTransport

if TYPE_CHECKING:
    from celery import Celery


def activity_homes(app: Celery) -> dict[str, str]:
    """Returns the queue of each activity by its name: its own, else as ``task_routes`` says, else the default."""
    transport = _transport(app)
    return {item.name: transport.activity_queue(item.name, item.options.queue) for item in activities.all()}


def workflow_homes(app: Celery) -> dict[str, str]:
    """Returns the queue of each workflow type by its name."""
    transport, types = _transport(app), default_registry()
    return {name: transport.decision_queue(types.get(name).queue) for name in types.names()}


def used_queues(app: Celery) -> set[str]:
    """Returns the queues that the code of this process uses, and the default one."""
    homes = {*activity_homes(app).values(), *workflow_homes(app).values()}
    return homes | {str(app.conf.task_default_queue)}


def _transport(app: Celery) -> CeleryTransport:
    # It connects at its first message, and is sent none.
    return CeleryTransport(app, publish_timeout=timedelta(seconds=1))
