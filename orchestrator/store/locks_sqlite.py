"""The run lock on SQLite: a mutex in the process, and a check before the write.

SQLite has one writer for the whole file, so workflow code must not run inside the write transaction::

    mutex of the run (this process, not waiting)      none: somebody else decides
    read run / history / inbox                        short reads, no lock held
    … workflow code …
    writer lock, BEGIN IMMEDIATE                      connection() or enter_gate()
    (last_seq, decision_token) as they were read?     no: DecisionOutdated, start over
    INSERT, UPDATE, DELETE …; COMMIT

The mutex only saves work; the check is what keeps one writer per history, across processes too. Inside
the write transaction nobody else can write, which is what the gate is for on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol

from sqlalchemy import Connection

from orchestrator.model.events import Event
from orchestrator.model.records import InboxKind, InboxRow, RunRecord
from orchestrator.store import history, inbox, runs
from orchestrator.store.failures import DecisionOutdated, translated
from orchestrator.store.locks import Now
from orchestrator.types import Micros


class Access(Protocol):
    """Where the lock gets its connections."""

    def read(self) -> AbstractContextManager[Connection]:
        """Opens a connection for reads."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """Opens a write transaction that is rolled back at the end unless committed before."""
        ...


class SqliteRunLock:
    """The lock of one run; see :class:`~orchestrator.store.locks.RunLock`.

    Args:
        access: Opens connections.
        run_id: The run, whose mutex the caller holds.
        now: Reads the clock.
        stack: Closed by the caller when the lock is left.
    """

    def __init__(self, access: Access, run_id: str, *, now: Now, stack: ExitStack) -> None:
        self.run_id = run_id
        self._access = access
        self._now = now
        self._stack = stack
        self._writing: Connection | None = None
        self._seen: tuple[int, str] | None = None
        self._ended = False

    def exists(self) -> bool:
        """Tells whether there is such a run."""
        with self._reading() as conn:
            return runs.version(conn, self.run_id) is not None

    def now(self) -> Micros:
        with self._reading() as conn:
            return self._now(conn)

    def run(self) -> RunRecord:
        with self._reading() as conn:
            run = runs.get(conn, self.run_id)
        if run is None:
            raise DecisionOutdated(f"Run {self.run_id} was deleted meanwhile")
        self._seen = (run.last_seq, run.decision_token)
        return run

    def events(self, after: int = 0) -> list[Event]:
        with self._reading() as conn:
            events = history.read(conn, self.run_id, after=after)
        # Another process may have committed since run() was read; its events belong to a run nobody here saw.
        return [event for event in events if self._seen is None or event.seq <= self._seen[0]]

    def inbox(self, limit: int, exclude: Collection[int] = ()) -> list[InboxRow]:
        with self._reading() as conn:
            return inbox.read(conn, self.run_id, limit, exclude)

    def first_of(self, kinds: Collection[InboxKind]) -> InboxRow | None:
        with self._reading() as conn:
            return inbox.first_of(conn, self.run_id, kinds)

    def enter_gate(self, lineage_id: str) -> None:  # noqa: ARG002 - the writer's lock shuts everybody out
        self.connection()

    @translated()
    def connection(self) -> Connection:
        self._check()
        if self._writing is not None:
            return self._writing
        seen = self._seen
        if seen is None:
            self.run()
            seen = self._seen
        conn = self._stack.enter_context(self._access.writing())
        if runs.version(conn, self.run_id) != seen:
            raise DecisionOutdated(f"Another process decided run {self.run_id} meanwhile")
        self._writing = conn
        return conn

    def commit(self) -> None:
        self._check()
        self._ended = True
        if self._writing is not None:
            with translated(committing=True):
                self._writing.commit()
        # The writer's lock is given back at once, not when the decision has published.
        self._stack.close()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self._check()
        if self._writing is not None:
            with translated():
                yield self._writing
        else:
            with translated(), self._access.read() as conn:
                yield conn

    def _check(self) -> None:
        if self._ended:
            raise RuntimeError("The run lock was given back by its commit; take it again")
