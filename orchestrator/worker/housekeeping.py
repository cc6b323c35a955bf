"""What every worker does beside its tasks, on threads of its parent process.

* It writes a sign of life (a row) with its live processes: by it others tell whether an attempt is lost (P7).
* It runs the sweep whenever nobody else does: full pools, starved queues or a missing beat cost seconds (P8).
* It records attempts whose process is gone, as Celery reports them.
* It kills pool processes whose attempt has passed its start-to-close time-out, under prefork.

The sweep has a thread of its own, since it may wait for the broker and sleeps to timers' due times.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from celery.worker import state

from orchestrator.engine import attempts, sweep
from orchestrator.engine.attempts import Ticket
from orchestrator.engine.core import Engine
from orchestrator.errors import Unavailable
from orchestrator.model.failures import Failure, FailureKind
from orchestrator.model.records import WorkerRecord
from orchestrator.store import sweeps, workers
from orchestrator.types import SECOND
from orchestrator.worker import identity
from orchestrator.worker.header import start_to_close_of
from orchestrator.worker.periodic import Periodic
from orchestrator.worker.request import AttemptRequest, Gone

logger = logging.getLogger(__name__)

KILL_GRACE = 0.5
"""Seconds past start-to-close before the process is killed, so that the database agrees that it has passed."""
MISSED_TICKS = 3
"""Intervals without a tick after which a worker sweeps itself."""


@dataclass(frozen=True, kw_only=True)
class WorkerFacts:
    """What a worker says about itself; the callables are asked at each sign of life."""

    hostname: str
    queues: Callable[[], Sequence[str]]
    pids: Callable[[], Sequence[int]]
    tasks: Sequence[str]
    has_children: bool
    """True under prefork, where a pool process runs one attempt."""


class Housekeeping:
    """The background services of one worker.

    Args:
        engine: The engine.
        facts: What the worker says about itself.
        clock: The time of day in seconds, as Celery's requests carry it.
    """

    def __init__(self, engine: Engine, facts: WorkerFacts, *, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._facts = facts
        self._clock = clock
        self._gone: queue.SimpleQueue[tuple[Ticket, Gone]] = queue.SimpleQueue()
        self._started_at = int(clock() * SECOND)
        self._signed_at: float | None = None
        self._stopping = False
        self._interrupted: list[Ticket] = []
        self._swept_last = False
        interval = engine.settings.sweep_interval.total_seconds()
        self._chores = Periodic("orchestrator-housekeeping", min(1.0, interval), self.do_chores)
        self._sweeper = Periodic("orchestrator-sweep", interval, self.sweep_if_needed)

    def start(self) -> None:
        """Signs life, then starts the threads. A worker is known before it claims anything.

        Raises:
            Unavailable: The database can't be reached.
        """
        self.sign_life()
        self._chores.start()
        self._sweeper.start()

    def begin_shutdown(self) -> None:
        """Tells others that the worker takes nothing new."""
        self._stopping = True
        self._signed_at = None
        self._chores.wake()

    def note_interruption(self) -> None:
        """Remembers what runs at a shut-down that does not wait for it: handed back once it has ended."""
        self._interrupted = [ticket for request in _active_requests() if (ticket := request.ticket) is not None]

    def stop(self) -> None:
        """Ends the threads and takes the worker's row away: what it still holds is lost, and known at once."""
        self._sweeper.stop()
        self._chores.stop()
        for ticket in self._interrupted:
            self._gone.put((ticket, Gone.SHUT_DOWN))
        try:
            self._record_gone()
            self._engine.db.run(lambda conn: workers.delete(conn, identity.worker_id()), what="sign off")
        except Exception:
            logger.warning("The worker could not sign off; others notice within seconds.", exc_info=True)

    def report_gone(self, ticket: Ticket, gone: Gone) -> None:
        """Takes note of an attempt whose process is gone; it is recorded by the thread."""
        self._gone.put((ticket, gone))
        self._chores.wake()

    def do_chores(self) -> None:
        """One round: lost attempts, overdue children, the sign of life."""
        try:
            if self._facts.has_children:
                self._watch_children()
            self._record_gone()
        finally:
            # Whatever goes wrong above: a worker that falls silent loses all that it runs.
            interval = self._engine.settings.liveness_interval.total_seconds()
            if self._signed_at is None or self._engine.monotonic() - self._signed_at >= interval:
                self.sign_life()

    def sign_life(self) -> None:
        """Writes the worker's row."""
        facts = self._facts
        found = [(pid, identity.process_started(pid)) for pid in facts.pids()]
        pids = [(pid, started) for pid, started in found if started is not None]
        record = WorkerRecord(
            worker_id=identity.worker_id(),
            hostname=facts.hostname,
            namespace=self._engine.settings.namespace,
            queues=tuple(facts.queues()),
            pids=tuple(pids),
            tasks=tuple(facts.tasks),
            workflows=tuple(self._engine.registry.names()),
            build_id=self._engine.settings.build_id,
            seen_clock=0,
            seen_at=int(self._clock() * SECOND),
            started_at=self._started_at,
            stopping=self._stopping,
        )
        self._engine.db.run(lambda conn: workers.upsert(conn, record), what="sign of life")
        self._signed_at = self._engine.monotonic()

    def sweep_if_needed(self) -> None:
        """Runs a tick when the last one is too old, and goes on doing so while nobody else does."""
        interval = self._engine.settings.micros("sweep_interval")
        with self._engine.db.read() as conn:
            last, now = sweeps.last_tick(conn), self._engine.db.now(conn)
        missed = 1 if self._swept_last else MISSED_TICKS
        if last is None or not 0 <= now - last < missed * interval:
            self._swept_last = sweep.sweep(self._engine) is not None
        elif now - last < interval:
            self._swept_last = False

    def _record_gone(self) -> None:
        while True:
            try:
                ticket, gone = self._gone.get_nowait()
            except queue.Empty:
                return
            try:
                attempts.report_gone(
                    self._engine,
                    ticket,
                    identity.worker_id(),
                    failure=_TIME_LIMIT if gone is Gone.TIME_LIMIT else None,
                    handed_back=gone is Gone.SHUT_DOWN,
                )
            except Unavailable:
                self._gone.put((ticket, gone))
                raise
            except Exception:
                # Tried again it would fail again, and keep all others from being recorded: liveness is left with it.
                logger.exception("The lost attempt %s can't be recorded.", ticket)

    def _watch_children(self) -> None:
        """Reports attempts whose process is gone, long before Celery does, and kills those that are overdue."""
        for request in _active_requests():
            pid: int | None = getattr(request, "worker_pid", None)
            if pid is None or request.child_started is None or request.reported or pid == os.getpid():
                continue
            if not identity.is_alive(pid, request.child_started):
                request.reported = True
                self._gone.put((request.ticket, Gone.DIED))
            elif self._is_overdue(request):
                logger.warning(
                    "%s has run longer than its start-to-close time-out: process %d is killed.", request, pid
                )
                os.kill(pid, signal.SIGKILL)

    def _is_overdue(self, request: Any) -> bool:
        limit, began = start_to_close_of(request.request_dict), getattr(request, "time_start", None)
        return limit is not None and began is not None and self._clock() - began >= limit + KILL_GRACE


_TIME_LIMIT = Failure(
    kind=FailureKind.TIMEOUT,
    type="ActivityTimeout",
    message="Celery's hard time limit (time_limit) passed.",
    attributes={"timeout_type": "start_to_close"},
)


def _active_requests() -> list[Any]:
    for _ in range(100):
        try:
            return [request for request in state.active_requests if isinstance(request, AttemptRequest)]
        except RuntimeError:  # the main thread changed the set meanwhile
            continue
    return []
