"""Activities: the pieces of work that a workflow calls, each a Celery task.

    from orchestrator import activity

    @activity.defn(start_to_close_timeout=30)
    def charge(order_id: str, cents: int) -> str:
        return gateway.charge(order_id, cents, idempotency_key=activity.info().idempotency_key)

From workflow code: ``await charge.execute("42", 999)``. Elsewhere it is a task: ``charge.delay("42", 999)``.
"""

from __future__ import annotations

from typing import Any

from orchestrator.activity import resolving as _resolving  # noqa: F401 - says what names and signatures mean
from orchestrator.activity.calls import ActivityReference
from orchestrator.activity.context import ActivityInfo, is_worker_shutting_down, maybe_running, running
from orchestrator.activity.legacy import TaskReference, of
from orchestrator.activity.logs import logger
from orchestrator.activity.tasks import Activity, AsyncActivity, defn
from orchestrator.errors import Cancelled


def info() -> ActivityInfo:
    """Returns the facts about the running attempt.

    Raises:
        NotInActivity: No activity runs here, for example since the function was called directly.
    """
    return running().info


def heartbeat(*details: Any) -> None:
    """Says that the activity is alive and how far it is, and learns whether to stop.

    Call it as often as you like: it is stored at most every third of the heartbeat time-out (every second
    without one), and the newest details are stored in any case when the attempt ends.

    Args:
        *details: JSON-able values; the next attempt reads them with ``activity.info().heartbeat_details(type)``.

    Raises:
        Cancelled: The workflow cancelled the activity, or another attempt has taken over. Clean up and let it pass.
        NotInActivity: No activity runs here.
        PayloadError: The details can't be stored as JSON.
    """
    running().heartbeat(details)


def is_cancelled() -> bool:
    """Tells whether an earlier heartbeat learned that the activity should stop.

    Raises:
        NotInActivity: No activity runs here.
    """
    return running().cancelled is not None


def in_workflow() -> bool:
    """Tells whether the running activity was called by a workflow; False in a plain call too."""
    attempt = maybe_running()
    return attempt is not None and attempt.info.workflow_id is not None


__all__ = [
    "Activity",
    "ActivityInfo",
    "ActivityReference",
    "AsyncActivity",
    "Cancelled",
    "TaskReference",
    "defn",
    "heartbeat",
    "in_workflow",
    "info",
    "is_cancelled",
    "is_worker_shutting_down",
    "logger",
    "of",
]
