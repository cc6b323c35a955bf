"""Transactions on SQLite: one writer, and an orderly queue in front of it.

SQLite lets one connection write at a time and makes the others poll for their turn. A lock in the process
in front of ``BEGIN IMMEDIATE`` turns the polling into a queue (p99 35 ms instead of 1,030 for 8 threads);
only other processes still meet the busy time-out. All :class:`SqliteBackend` objects of one file in a
process share that lock.

In memory there is one connection for all threads: each read or transaction has it to itself, and a thread
that reads inside its own transaction sees that transaction.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from sqlalchemy import Connection, Engine, event

from orchestrator.store.failures import Interrupted, translated
from orchestrator.store.locks import Now, RunLock
from orchestrator.store.locks_sqlite import SqliteRunLock
from orchestrator.types import Micros, SystemClock

_PATIENCE: Final = 10.0
_IMMEDIATE: Final = {"begin_statement": "BEGIN IMMEDIATE"}


class FileGuards:
    """The locks that all users of one database file in this process share."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Makes fresh locks, in a forked child: the parent's other threads can't give theirs back there."""
        self.writer = threading.Lock()
        self.writer_thread: int | None = None
        self._runs: set[str] = set()
        self._runs_lock = threading.Lock()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Waits for the writer's lock.

        Raises:
            RuntimeError: This thread has it already, so it would wait for itself.
            Interrupted: Another thread has had it for too long.
        """
        me = threading.get_ident()
        if self.writer_thread == me:
            raise RuntimeError("This thread is inside a write transaction already; use its connection")
        writer = self.writer
        if not writer.acquire(timeout=_PATIENCE):
            raise Interrupted(f"Another thread has been writing for {_PATIENCE:g} s")
        self.writer_thread = me
        try:
            yield
        finally:
            self.writer_thread = None
            writer.release()

    def try_run(self, run_id: str, stack: ExitStack) -> bool:
        """Takes the mutex of a run, given back when ``stack`` closes; False when it is taken."""
        with self._runs_lock:
            if run_id in self._runs:
                return False
            self._runs.add(run_id)
        stack.callback(self._runs.discard, run_id)
        return True


_guards: weakref.WeakValueDictionary[str, FileGuards] = weakref.WeakValueDictionary()
_guards_lock = threading.Lock()


def _after_fork_in_child() -> None:
    global _guards_lock  # noqa: PLW0603 - another thread of the parent may have held it
    _guards_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork_in_child)


def guards_of(path: str) -> FileGuards:
    """Returns the guards of a file, the same object for all spellings of its path."""
    key = os.path.realpath(Path(path))
    with _guards_lock:
        guards = _guards.get(key)
        if guards is None:
            guards = _guards[key] = FileGuards()
        return guards


class SqliteBackend:
    """Connections to one database file.

    Args:
        engine: Made by :func:`~orchestrator.store.engines.sqlite_engine`.
        guards: The locks of the file.
    """

    dialect: Literal["postgresql", "sqlite"] = "sqlite"

    def __init__(self, engine: Engine, guards: FileGuards) -> None:
        self.engine = engine
        self._guards = guards
        self._clock = SystemClock()
        self._opened: weakref.WeakSet[sqlite3.Connection] = weakref.WeakSet()
        self._abandoned: list[sqlite3.Connection] = []
        event.listen(engine, "connect", self._note_opened)

    def now(self, conn: Connection) -> Micros:  # noqa: ARG002 - PostgreSQL's clock is asked through it
        """Reads the clock of this machine: every process of an SQLite database runs on it."""
        return self._clock.now()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Opens a transaction that sees one state of the database and is rolled back at the end."""
        with self.engine.connect() as conn:
            yield conn

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Opens a write transaction that is rolled back at the end unless it was committed."""
        with self._guards.writing(), self.engine.connect() as conn:
            conn.execution_options(**_IMMEDIATE)
            conn.begin()
            yield conn

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Opens a write transaction that is committed at the end."""
        with self.writing() as conn:
            yield conn
            with translated(committing=True):
                conn.commit()

    def lock_run(self, run_id: str, *, now: Now, stack: ExitStack) -> RunLock | None:
        """Takes the run's mutex, given back when ``stack`` closes; None when taken or without such a run."""
        if not self._guards.try_run(run_id, stack):
            return None
        lock = SqliteRunLock(self, run_id, now=now, stack=stack.enter_context(ExitStack()))
        return lock if lock.exists() else None

    def after_fork(self) -> None:
        """Forgets the parent's connections.

        They are kept for ever, as closing one here would drop the parent's locks and could remove its log.
        """
        self._abandoned.extend(self._opened)
        self._guards.reset()
        self.engine.dispose(close=False)

    def _note_opened(self, connection: sqlite3.Connection, _entry: Any) -> None:
        self._opened.add(connection)


class MemoryBackend(SqliteBackend):
    """One connection to a database in memory, had by one thread at a time.

    Args:
        engine: Made by :func:`~orchestrator.store.engines.sqlite_engine`.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, FileGuards())
        self._mine = threading.RLock()
        self._current: Connection | None = None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self._mine:
            if self._current is not None:
                yield self._current
                return
            with super().read() as conn, self._as_current(conn):
                yield conn

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._mine:
            outer = self._current
            if outer is None:
                with super().writing() as conn, self._as_current(conn):
                    yield conn
                return
            # Inside this thread's own read: that gives way, and goes on with what was written.
            with self._guards.writing():
                outer.rollback()
                with contextlib.closing(outer.begin()):
                    yield outer

    def after_fork(self) -> None:
        """Leaves the child its copy of the database."""
        self._mine = threading.RLock()
        self._guards.reset()

    @contextmanager
    def _as_current(self, conn: Connection) -> Iterator[None]:
        self._current = conn
        try:
            yield
        finally:
            self._current = None
