"""Starts and signals inside the caller's own transaction, and waking them after its commit.

What is written through the caller's connection happens if and when the caller commits. Only then may anybody be
woken, and only the caller knows when that is: ``flush()`` does it, else the next tick of the sweep.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from orchestrator.engine import outbox, runs
from orchestrator.engine.runs import StartRequest, StartResult
from orchestrator.errors import InvalidArgument
from orchestrator.model.options import IdReusePolicy
from orchestrator.store import runs as run_rows

if TYPE_CHECKING:
    from orchestrator.engine.core import Engine
    from orchestrator.engine.signals import SignalRequest
    from orchestrator.store.database import Connection

REMEMBERED = 1000
"""Starts that are remembered until they are flushed; the sweep wakes what is forgotten."""
BATCH = 200
"""Signals that one look into the outbox delivers."""


class Uncommitted:
    """The starts of this process that may not be committed yet. Thread-safe."""

    def __init__(self) -> None:
        self._started: deque[StartResult] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()

    def start(self, engine: Engine, conn: Connection, request: StartRequest) -> StartResult:
        """Starts a run in the caller's transaction.

        Raises:
            InvalidArgument: The policy would have to commit something of its own first.
            WorkflowAlreadyStarted: The id is taken, and the policy does not allow another run.
        """
        if request.id_reuse_policy is IdReusePolicy.TERMINATE_EXISTING:
            raise InvalidArgument(
                "id_reuse_policy",
                "terminate_existing has to see the other run end, which takes transactions of its own; leave out connection=",
            )
        result = runs.start_within(engine, conn, request)
        if result.created:
            with self._lock:
                self._started.append(result)
        return result

    def flush(self, engine: Engine) -> None:
        """Wakes the runs that are committed by now, and delivers the signals that are."""
        with self._lock:
            started = list(self._started)
            self._started.clear()
        if started:
            visible = engine.db.query(lambda conn: _visible(conn, started), what="look for committed starts")
            runs.wake_started(engine, [result for result in started if result.run.run_id in visible])
            with self._lock:
                self._started.extend(result for result in started if result.run.run_id not in visible)
        while outbox.deliver(engine, None, BATCH) == BATCH:
            pass


def signal_within(engine: Engine, conn: Connection, request: SignalRequest) -> None:
    """Sends a signal in the caller's transaction.

    Raises:
        WorkflowNotFound: There is no such workflow or run, as that transaction sees it.
    """
    outbox.enqueue_signal(engine, conn, request)


def _visible(conn: Connection, started: list[StartResult]) -> set[str]:
    ids = [result.run.run_id for result in started]
    return {run_id for run_id in ids if run_rows.version(conn, run_id) is not None}
