"""What a worker's parent process sees of an attempt: accepted, gone with its child, over its time limit.

Celery makes a request object per message in the parent. Ours reports an attempt whose child process died or
was killed for a time limit as soon as Celery notices; liveness (a row per worker) is the backstop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import Any, cast

from billiard.exceptions import Terminated
from celery import Celery
from celery.exceptions import TimeLimitExceeded, WorkerLostError
from celery.utils.imports import symbol_by_name
from celery.worker import state

from orchestrator.engine.attempts import Ticket
from orchestrator.transport.celery import DECIDE_TASK
from orchestrator.worker.header import start_to_close_of, ticket_of
from orchestrator.worker.identity import process_started

logger = logging.getLogger(__name__)

_GONE = (WorkerLostError, TimeLimitExceeded, Terminated, SystemExit, KeyboardInterrupt)


class Gone(StrEnum):
    """Why the process that ran an attempt is gone."""

    DIED = "died"
    TIME_LIMIT = "time limit"
    """Celery killed it for its hard time limit."""
    SHUT_DOWN = "shut down"
    """The worker is being stopped and does not wait for it."""


Report = Callable[[Ticket, Gone], None]
"""Takes the ticket of an attempt whose process is gone. Must not wait or lock: it is called in the worker's main
loop, and in its signal handlers."""


class AttemptRequest:
    """Mixed into a task's request class."""

    report: Report
    """Set by the worker: passes a lost attempt on, without waiting."""
    longest_unacknowledged: float | None
    """Set by the worker: seconds after which the broker gives an unacknowledged message to somebody else."""
    child_started: int | None = None
    """Start time of the process that runs it (0: it was gone already); None before it runs, or for other messages."""
    reported = False
    """Its process was reported gone."""

    request_dict: dict[str, Any]
    id: str

    @property
    def ticket(self) -> Ticket | None:
        """What the message says about its attempt; None for other messages."""
        return ticket_of(self.request_dict)

    def on_accepted(self, pid: int, time_accepted: float) -> None:
        """A pool process begins."""
        super().on_accepted(pid, time_accepted)  # type: ignore[misc]
        if self.ticket is None:
            return
        self.child_started = process_started(pid) or 0
        limit, longest = start_to_close_of(self.request_dict), self.longest_unacknowledged
        if limit is not None and longest is not None and limit >= longest:
            # Allowed to run longer than the broker waits: its row watches over it from here on.
            self.acknowledge()  # type: ignore[attr-defined]

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        """The pool process failed, or died."""
        self._report_if_gone(exc_info.exception)
        return super().on_failure(exc_info, send_failed_event, return_ok)  # type: ignore[misc]

    def on_timeout(self, soft: bool, timeout: float) -> Any:
        """A time limit of Celery's passed; the hard one kills the process."""
        if not soft:
            self._report_if_gone(TimeLimitExceeded(timeout))
        return super().on_timeout(soft, timeout)  # type: ignore[misc]

    def cancel(self, pool: Any, signal: Any = None, emit_retry: bool = True) -> None:
        """The worker ends it, since it shuts down or has lost the broker."""
        # Told at once, before the process is missed: it is handed back, not lost.
        super().cancel(pool, signal, emit_retry)  # type: ignore[misc]
        if (ticket := self.ticket) is not None:
            type(self).report(ticket, Gone.SHUT_DOWN)

    def revoked(self) -> bool:
        """Tells whether to drop the message. Ours are not dropped: cancelling is the workflow's business."""
        if self.ticket is None:
            return bool(super().revoked())  # type: ignore[misc]
        if self.id in state.revoked:
            logger.warning("Task %s belongs to a workflow, so it is not revoked; cancel the workflow.", self)
        return False

    def reject(self, requeue: bool = False) -> None:
        """Gives the message back to the broker."""
        info = self.request_dict.get("delivery_info") or {}
        if requeue and self.request_dict.get("task") == DECIDE_TASK and info.get("redelivered"):
            # A decision that kills its worker twice running waits for the sweep, which backs off.
            requeue = False
        super().reject(requeue)  # type: ignore[misc]

    def _report_if_gone(self, error: BaseException) -> None:
        # billiard wraps what a child raised, to keep its traceback.
        error = getattr(error, "exc", None) or error
        ticket = self.ticket
        if ticket is None or not isinstance(error, _GONE):
            return
        # An exit code, so 0 means it too. The worker also cancels what runs when it loses the broker.
        if cast("Any", state).should_terminate not in (None, False) or getattr(self, "_already_cancelled", False):
            gone = Gone.SHUT_DOWN
        else:
            gone = Gone.TIME_LIMIT if isinstance(error, TimeLimitExceeded) else Gone.DIED
        self.reported = True
        type(self).report(ticket, gone)


def install(app: Celery, report: Report, longest_unacknowledged: float | None) -> None:
    """Gives every task of the app a request class with :class:`AttemptRequest` mixed in."""
    attributes = {"report": staticmethod(report), "longest_unacknowledged": longest_unacknowledged}
    made: dict[type, type] = {}
    task: Any
    for task in app.tasks.values():
        base = symbol_by_name(task.Request)
        base = base.__mro__[2] if issubclass(base, AttemptRequest) else base
        if base not in made:
            made[base] = type(base.__name__, (AttemptRequest, base), attributes)
        task.Request = made[base]


__all__ = ["AttemptRequest", "Gone", "Report", "install"]
