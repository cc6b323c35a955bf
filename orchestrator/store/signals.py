"""Accepted signals, kept as long as their lineage (``orchestrator_signals``), and the lineage's gate.

The gate (P6) keeps "accepted" true: senders hold its shared form from their look-up of the open run to
their commit, a closing decision holds it exclusively from before its first write to its commit. So a
sender's row is either seen by the closing decision, or the sender finds the run closed.
"""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from orchestrator.model.records import SignalKey
from orchestrator.store.mapping import columns_of, record_or_none, values_of
from orchestrator.store.mapping import key as key_of
from orchestrator.store.schema import signals as table

_KEY = select(*columns_of(table, SignalKey)).where(*key_of(table, "lineage_id", "signal_id"))
_INSERT_KEY = {
    "postgresql": insert_postgresql(table).on_conflict_do_nothing(),
    "sqlite": insert_sqlite(table).on_conflict_do_nothing(),
}
_GATE_SHARED = text("SELECT pg_advisory_xact_lock_shared(:key)")


def gate_key(lineage_id: str) -> int:
    """Returns the advisory lock of a lineage's gate: 64 bits, the same in every version."""
    digest = hashlib.blake2b(lineage_id.encode(), digest_size=8, person=b"orch-gate").digest()
    return int.from_bytes(digest, "big", signed=True)


def enter_gate_shared(conn: Connection, lineage_id: str) -> None:
    """Keeps the lineage's open run from closing until this transaction ends.

    What it protects is to be read by a later statement. On SQLite the write transaction does it by itself.
    """
    if conn.dialect.name == "postgresql":
        conn.execute(_GATE_SHARED, {"key": gate_key(lineage_id)})


def key(conn: Connection, lineage_id: str, signal_id: str) -> SignalKey | None:
    """Returns what is remembered of a signal."""
    return record_or_none(SignalKey, conn.execute(_KEY, {"key_lineage_id": lineage_id, "key_signal_id": signal_id}))


def insert_key(conn: Connection, accepted: SignalKey) -> bool:
    """Remembers a signal; False when its id was used before in the lineage (also by a concurrent sender)."""
    return conn.execute(_INSERT_KEY[conn.dialect.name], values_of(accepted)).rowcount == 1
