"""Transactions on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, Literal

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from orchestrator.store.failures import translated
from orchestrator.store.locks import Now, RunLock
from orchestrator.store.locks_postgresql import PostgresRunLock, try_lock
from orchestrator.types import Micros

_NOW: Final = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")
_GATE_TIMEOUT_MS: Final = 500


class PostgresBackend:
    """Hands out connections of a pool; the server does all the locking.

    Args:
        engine: Made by :func:`~orchestrator.store.engines.postgresql_engine`.
    """

    dialect: Literal["postgresql", "sqlite"] = "postgresql"

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def now(self, conn: Connection) -> Micros:
        """Reads the server's clock; unlike ``now()`` it moves within a transaction."""
        return int(conn.execute(_NOW).scalar_one())

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Opens a transaction that is rolled back at the end."""
        with self._connected() as conn:
            yield conn

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Opens a transaction that is committed at the end."""
        with self._connected() as conn:
            yield conn
            with translated(committing=True):
                conn.commit()

    def lock_run(self, run_id: str, *, now: Now, stack: ExitStack) -> RunLock | None:
        """Takes the run's lock, given back when ``stack`` closes; None when it is taken."""
        conn = stack.enter_context(self._connected())
        if not try_lock(conn, run_id):
            return None
        return PostgresRunLock(conn, run_id, now=now, gate_timeout_ms=_GATE_TIMEOUT_MS)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        conn = self.engine.connect()
        try:
            yield conn
        finally:
            # A connection that the server has ended is rolled back; that must not hide what the block raised.
            with suppress(DBAPIError):
                conn.close()

    def after_fork(self) -> None:
        """Forgets the parent's connections without closing them."""
        self.engine.dispose(close=False)
