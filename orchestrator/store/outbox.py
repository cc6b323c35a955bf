"""Deliveries that have no row of their own: ``orchestrator_outbox`` (P4).

Only signals sent by workflow code or inside a caller's own transaction go through it; everything on the
hot path is re-sent from the row it is about.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, select
from sqlalchemy import delete as sql_delete
from sqlalchemy import insert as sql_insert
from sqlalchemy import update as sql_update

from orchestrator.store.mapping import batches, columns_of, key, records
from orchestrator.store.schema import outbox as table
from orchestrator.types import Attributes, Micros


@dataclass(frozen=True, kw_only=True, slots=True)
class OutboxRow:
    """One delivery that is not done yet."""

    id: int
    namespace: str
    kind: str
    attrs: Attributes = field(default_factory=dict)
    payload: bytes | None = None
    created_at: Micros
    next_send_at: Micros
    send_count: int = 0


_INSERT = sql_insert(table).returning(table.c.id)
_DUE = (
    select(*columns_of(table, OutboxRow))
    .where(table.c.next_send_at <= bindparam("now"))
    .order_by(table.c.next_send_at)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)
_POSTPONE = (
    sql_update(table)
    .where(*key(table, "id"))
    .values(send_count=table.c.send_count + 1, next_send_at=bindparam("new_next_send_at"))
)


def insert(
    conn: Connection,
    namespace: str,
    kind: str,
    *,
    attrs: Attributes,
    payload: bytes | None = None,
    now: Micros,
    next_send_at: Micros,
) -> int:
    """Adds a delivery and returns its id."""
    values = {
        "namespace": namespace,
        "kind": kind,
        "attrs": attrs,
        "payload": payload,
        "created_at": now,
        "next_send_at": next_send_at,
        "send_count": 0,
    }
    return int(conn.execute(_INSERT, values).scalar_one())


def due(conn: Connection, now: Micros, limit: int) -> list[OutboxRow]:
    """Returns deliveries to be made, locked to the end of the transaction."""
    return records(OutboxRow, conn.execute(_DUE, {"now": now, "limit": limit}))


def postpone(conn: Connection, row_id: int, next_send_at: Micros) -> None:
    """Notes that a delivery was tried in vain, and when to try it next."""
    conn.execute(_POSTPONE, {"key_id": row_id, "new_next_send_at": next_send_at})


def delete(conn: Connection, ids: Collection[int]) -> int:
    """Deletes deliveries that were made and returns how many there were."""
    return sum(conn.execute(sql_delete(table).where(table.c.id.in_(batch))).rowcount for batch in batches(ids))
