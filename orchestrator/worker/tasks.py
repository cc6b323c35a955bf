"""Our two Celery tasks: decide a run, and run one tick of the sweep.

Neither is ever retried by Celery or reported as an error for what a database or broker does: everything they
stand for is a row, and the sweep comes again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from celery import Celery

from orchestrator.engine import decision, sweep
from orchestrator.engine.wakeups import note_arrival
from orchestrator.errors import OrchestratorError, Unavailable
from orchestrator.transport.celery import DECIDE_TASK, SWEEP_TASK
from orchestrator.worker.binding import engine_of
from orchestrator.worker.header import arrival_of

logger = logging.getLogger(__name__)

_DELIVERY: dict[str, Any] = {
    "acks_late": True,
    "acks_on_failure": True,
    "acks_on_timeout": True,
    "acks_on_failure_or_timeout": True,
    "reject_on_worker_lost": True,
    "retry_on_worker_lost": False,
    "ignore_result": True,
    "store_errors_even_if_ignored": False,
    "track_started": False,
    "serializer": "json",
    "rate_limit": None,
    "shared": False,
}


def _on_a_thread(work: Callable[[], None]) -> None:
    """Looks ahead beside the pool slot, which must not sleep. Should the process end, timers are one tick late."""

    def quietly() -> None:
        try:
            work()
        except OrchestratorError:
            logger.debug("No look ahead now.", exc_info=True)

    threading.Thread(target=quietly, name="orchestrator-look-ahead", daemon=True).start()


def register(app: Celery) -> None:
    """Registers our tasks in an app, when it is finalized."""

    @app.task(name=DECIDE_TASK, bind=True, **_DELIVERY)
    def decide(task: Any, run_id: str) -> str:
        """Decides a run: takes its new events, runs its code, stores what it asks for."""
        try:
            arrival = arrival_of(vars(task.request))
            if arrival is not None:
                note_arrival(engine_of(app), *arrival)
            return str(decision.decide(engine_of(app), run_id))
        except Unavailable as error:
            logger.warning("Run %s can't be decided now; the sweep wakes it again: %s", run_id, error)
            return "unavailable"

    @app.task(name=SWEEP_TASK, **{**_DELIVERY, "acks_late": False})
    def sweep_once() -> dict[str, int] | None:
        """Runs one tick: due timers, deadlines and retries, lost workers and messages."""
        try:
            report = sweep.sweep(engine_of(app), aside=_on_a_thread)
        except Unavailable as error:
            logger.warning("No sweep now: %s", error)
            return None
        return None if report is None else report.counts
