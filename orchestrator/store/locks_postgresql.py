"""The run lock on PostgreSQL: a row lock, and an advisory lock as the gate.

::

    SELECT run_id … FOR NO KEY UPDATE SKIP LOCKED      its own statement; none: somebody else decides
    SELECT run / history / inbox                       later statements, hence later snapshots
    SELECT pg_advisory_xact_lock(hash(lineage))        only when closing; senders hold the shared form
    SELECT inbox                                       what the gate let through
    INSERT, UPDATE, DELETE …; COMMIT

Locking and reading in one statement would read a snapshot older than the lock: rows that the previous
holder drained would be applied twice. The row lock leaves foreign keys and readers alone (NO KEY).
The server ends the transaction of a holder that stopped or vanished: see ``engines.py``.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, select, text
from sqlalchemy.exc import DBAPIError

from orchestrator.model.events import Event
from orchestrator.model.records import InboxKind, InboxRow, RunRecord
from orchestrator.store import history, inbox, runs
from orchestrator.store.failures import GateBusy, translated
from orchestrator.store.locks import Now
from orchestrator.store.schema import runs as runs_table
from orchestrator.store.signals import gate_key
from orchestrator.types import Micros

# SKIP LOCKED: ten deciders woken for one run must not queue up; nine end at once.
_LOCK = (
    select(runs_table.c.run_id)
    .where(runs_table.c.run_id == bindparam("run_id"))
    .with_for_update(skip_locked=True, key_share=True)
)
# The time-out holds for the gate only; a sender keeps it for one short transaction.
_GATE_TIMEOUT = text(
    "WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS value)"
    " SELECT value, set_config('lock_timeout', :timeout, true) FROM before"
)
_GATE = text("SELECT pg_advisory_xact_lock(:key)")
_GATE_ENTERED = text("SELECT set_config('lock_timeout', :timeout, true)")
_LOCK_NOT_AVAILABLE = "55P03"


def try_lock(conn: Connection, run_id: str) -> bool:
    """Takes the run's lock in the connection's transaction; False when it is taken or there is no such run."""
    return conn.execute(_LOCK, {"run_id": run_id}).first() is not None


class PostgresRunLock:
    """The lock that :func:`try_lock` took; see :class:`~orchestrator.store.locks.RunLock`.

    Its reads translate the database's errors on the spot: who runs workflow code between them must be able
    to tell a lost connection from an error of that code.

    Args:
        conn: The connection that holds it.
        run_id: The run.
        now: Reads the clock.
        gate_timeout_ms: Longest wait for the gate in milliseconds.
    """

    def __init__(self, conn: Connection, run_id: str, *, now: Now, gate_timeout_ms: int) -> None:
        self.run_id = run_id
        self._conn = conn
        self._now = now
        self._gate_timeout = f"{gate_timeout_ms}ms"
        self._ended = False

    @translated()
    def now(self) -> Micros:
        return self._now(self.connection())

    @translated()
    def run(self) -> RunRecord:
        run = runs.get(self.connection(), self.run_id)
        assert run is not None, "a locked run can't be deleted"
        return run

    @translated()
    def events(self, after: int = 0) -> list[Event]:
        return history.read(self.connection(), self.run_id, after=after)

    @translated()
    def inbox(self, limit: int, exclude: Collection[int] = ()) -> list[InboxRow]:
        return inbox.read(self.connection(), self.run_id, limit, exclude)

    @translated()
    def first_of(self, kinds: Collection[InboxKind]) -> InboxRow | None:
        return inbox.first_of(self.connection(), self.run_id, kinds)

    @translated()
    def enter_gate(self, lineage_id: str) -> None:
        conn = self.connection()
        before = conn.execute(_GATE_TIMEOUT, {"timeout": self._gate_timeout}).scalar_one()
        try:
            conn.execute(_GATE, {"key": gate_key(lineage_id)})
        except DBAPIError as error:
            if getattr(error.orig, "pgcode", None) != _LOCK_NOT_AVAILABLE:
                raise
            raise GateBusy(f"Senders held the gate of lineage {lineage_id} for {self._gate_timeout}") from error
        conn.execute(_GATE_ENTERED, {"timeout": before})

    def connection(self) -> Connection:
        if self._ended:
            raise RuntimeError("The run lock was given back by its commit; take it again")
        return self._conn

    def commit(self) -> None:
        conn, self._ended = self.connection(), True
        with translated(committing=True):
            conn.commit()
