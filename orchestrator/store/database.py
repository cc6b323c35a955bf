"""The database as the engine sees it: a clock, transactions, and the lock of a run.

* :meth:`Database.read`, :meth:`Database.write` are plain transactions; an error that the database may get
  over comes out as :class:`~orchestrator.store.failures.Interrupted`.
* :meth:`Database.run` does a write transaction again until it succeeds, within a bounded time.
* :meth:`Database.lock_run` gives the right to append to one run's history (P1).

A forked child (Celery's prefork pool) forgets its parent's connections by itself.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Literal, Protocol, Self, TypeVar

from sqlalchemy import URL, Connection, Engine

from orchestrator.errors import InvalidArgument
from orchestrator.store import engines
from orchestrator.store.failures import translated
from orchestrator.store.locks import Now, RunLock
from orchestrator.store.postgresql import PostgresBackend
from orchestrator.store.retrying import Retrying
from orchestrator.store.sqlite import MemoryBackend, SqliteBackend, guards_of
from orchestrator.types import SECOND, Clock, Micros

T = TypeVar("T")


class Backend(Protocol):
    """What differs between the databases."""

    dialect: Literal["postgresql", "sqlite"]
    engine: Engine

    def now(self, conn: Connection) -> Micros:
        """Reads the database's clock."""
        ...

    def read(self) -> AbstractContextManager[Connection]:
        """Opens a transaction that is rolled back at the end."""
        ...

    def write(self) -> AbstractContextManager[Connection]:
        """Opens a transaction that is committed at the end."""
        ...

    def lock_run(self, run_id: str, *, now: Now, stack: ExitStack) -> RunLock | None:
        """Takes the run's lock, given back when ``stack`` closes; None when there is none to be had."""
        ...

    def after_fork(self) -> None:
        """Makes a forked child independent of its parent."""
        ...


class Database:
    """One database; threads share it. Made by :meth:`open`.

    Args:
        backend: What differs between the databases.
        url: Where it is; shown with its password hidden.
        clock: Replaces the database's clock.
        retrying: How :meth:`run` tries again.
    """

    def __init__(self, backend: Backend, *, url: URL, clock: Clock | None, retrying: Retrying) -> None:
        self._backend = backend
        self._url = url
        self._clock = clock
        self._retrying = retrying
        _databases.add(self)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Clock | None = None,
        pool_size: int = 5,
        decision_timeout_us: Micros = 2 * SECOND,
        application_name: str = "orchestrator",
        retrying: Retrying | None = None,
    ) -> Self:
        """Opens a database; nothing is connected before the first use.

        Args:
            url: ``postgresql://…`` or ``sqlite:///file``; ``sqlite://`` is a database in memory.
            clock: Replaces the database's clock, for tests and simulation.
            pool_size: Connections kept open per process; twice as many may be open at once.
            decision_timeout_us: Longest that workflow code may run between two statements, in microseconds.
            application_name: Shown in ``pg_stat_activity``.
            retrying: How to try again; default five seconds.

        Raises:
            ConfigurationError: The URL is wrong or not supported.
        """
        parsed = engines.parse_url(url)
        backend: Backend
        if parsed.get_backend_name() == "postgresql":
            backend = PostgresBackend(
                engines.postgresql_engine(
                    parsed,
                    pool_size=pool_size,
                    decision_timeout_us=decision_timeout_us,
                    application_name=application_name,
                )
            )
        elif engines.is_memory(parsed):
            backend = MemoryBackend(engines.sqlite_engine(parsed, pool_size=pool_size))
        else:
            backend = SqliteBackend(
                engines.sqlite_engine(parsed, pool_size=pool_size), guards_of(parsed.database or "")
            )
        return cls(backend, url=parsed, clock=clock, retrying=retrying or Retrying())

    def __repr__(self) -> str:
        return f"<Database {self._url.render_as_string(hide_password=True)}>"

    @property
    def dialect(self) -> Literal["postgresql", "sqlite"]:
        """Which database it is."""
        return self._backend.dialect

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine, for migrations and tests."""
        return self._backend.engine

    def now(self, conn: Connection) -> Micros:
        """Returns the present instant by the injected clock, else by the database's own."""
        return self._backend.now(conn) if self._clock is None else self._clock.now()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Opens a connection for reads.

        Raises:
            Interrupted: The database could not be reached, or broke the reads off.
            SchemaOutdated: A table is missing.
        """
        with translated(), self._backend.read() as conn:
            yield conn

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Opens a transaction: committed at the end, rolled back when an error leaves the block.

        Raises:
            Interrupted: It was rolled back by the database.
            CommitUnknown: The connection was lost during the commit.
            SchemaOutdated: A table is missing.
        """
        with translated(), self._backend.write() as conn:
            yield conn

    def run(self, work: Callable[[Connection], T], *, what: str, idempotent: bool = True) -> T:
        """Runs a write transaction until it succeeds, and returns what ``work`` returned.

        Args:
            work: Called with the connection, again from its beginning after a deadlock or a lost connection.
            what: Words for the error message, for example ``"start"``.
            idempotent: False: a commit whose answer was lost is not done again.

        Raises:
            Unavailable: The database could not be reached, or kept refusing, for five seconds.
            CommitUnknown: The answer to a commit was lost and the work is not idempotent.
        """

        def once() -> T:
            with self.write() as conn:
                return work(conn)

        return self._retrying.call(once, what=what, idempotent=idempotent)

    def query(self, work: Callable[[Connection], T], *, what: str) -> T:
        """Runs reads until they succeed, and returns what ``work`` returned.

        Raises:
            Unavailable: The database could not be reached for five seconds.
        """

        def once() -> T:
            with self.read() as conn:
                return work(conn)

        return self._retrying.call(once, what=what)

    @contextmanager
    def lock_run(self, run_id: str) -> Iterator[RunLock | None]:
        """Takes the lock of a run without waiting; None: it is taken, or there is no such run.

        Leaving the block gives it back; without :meth:`RunLock.commit` everything is rolled back.

        Raises:
            TryAgain: The transaction was rolled back; decide again.
            CommitUnknown: The answer to the commit was lost.
        """
        with translated(), ExitStack() as stack:
            yield self._retrying.call(lambda: self._try_lock(run_id, stack), what="lock a run")

    def _try_lock(self, run_id: str, stack: ExitStack) -> RunLock | None:
        with translated(), ExitStack() as attempt:
            lock = self._backend.lock_run(run_id, now=self.now, stack=attempt)
            # Kept only when nothing failed; a failed attempt gives its connection back before the next.
            stack.push(attempt.pop_all())
            return lock

    @contextmanager
    def transaction_of(self, conn: Any) -> Iterator[Connection]:
        """Writes through a caller's own SQLAlchemy connection or session; the caller commits.

        Args:
            conn: A ``Connection``, or an ORM ``Session``, on this database.

        Raises:
            InvalidArgument: It is something else, or is on another kind of database.
        """
        check_connection(conn)
        opened = conn if isinstance(conn, Connection) else _connection_of(conn)
        if opened.dialect.name != self.dialect:
            raise InvalidArgument(
                "connection", f"is on {opened.dialect.name}, but workflows are kept on {self.dialect}"
            )
        with translated():
            yield opened

    def dispose(self) -> None:
        """Closes the pooled connections; the next use opens new ones."""
        self._backend.engine.dispose()

    def after_fork(self) -> None:
        """Makes a forked child independent of its parent; called by itself in every child."""
        self._backend.after_fork()


def check_connection(conn: object) -> None:
    """Checks that a caller gave a connection, or a session that has one; it is not used yet.

    Raises:
        InvalidArgument: It is something else.
    """
    if not isinstance(conn, Connection) and not callable(getattr(conn, "connection", None)):
        raise InvalidArgument("connection", f"give a SQLAlchemy Connection or Session, not {type(conn).__name__}")


def _connection_of(session: Any) -> Connection:
    opened = session.connection()
    if not isinstance(opened, Connection):
        raise InvalidArgument("connection", "give a SQLAlchemy Connection or Session")
    return opened


_databases: weakref.WeakSet[Database] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for database in list(_databases):
        database.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)

__all__ = ["Backend", "Connection", "Database", "RunLock"]
