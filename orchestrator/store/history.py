"""Histories: ``orchestrator_history``, written by decisions only (P1)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select
from sqlalchemy import insert as sql_insert

from orchestrator.model.events import SCHEMA_VERSION, Event, from_stored, to_stored
from orchestrator.store.mapping import key
from orchestrator.store.schema import history as table

_APPEND = sql_insert(table)
# One range of the primary key: events of a run lie in their order.
_READ = (
    select(table.c.seq, table.c.at, table.c.version, table.c.kind, table.c.attrs, table.c.payload)
    .where(*key(table, "run_id"), table.c.seq > bindparam("after"))
    .order_by(table.c.seq)
)
_READ_BACKWARDS = _READ.order_by(None).order_by(table.c.seq.desc())


def append(conn: Connection, run_id: str, events: Sequence[Event]) -> None:
    """Appends events to a run's history; a sequence number that exists is an integrity error."""
    if events:
        conn.execute(_APPEND, [_stored(run_id, event) for event in events])


def _stored(run_id: str, event: Event) -> dict[str, object]:
    kind, attrs, payload = to_stored(event.body)
    return {
        "run_id": run_id,
        "seq": event.seq,
        "at": event.at,
        "version": SCHEMA_VERSION,
        "kind": kind,
        "attrs": attrs,
        "payload": payload,
    }


def read(
    conn: Connection,
    run_id: str,
    *,
    after: int = 0,
    before: int | None = None,
    limit: int | None = None,
    descending: bool = False,
) -> list[Event]:
    """Reads events of a run.

    Args:
        conn: The connection.
        run_id: The run.
        after: Only events with a higher sequence number.
        before: Only events with a lower sequence number.
        limit: Most events to return.
        descending: The latest first.

    Raises:
        ReplayError: History holds an event that this version does not know.
    """
    query = _READ_BACKWARDS if descending else _READ
    if before is not None:
        query = query.where(table.c.seq < before)
    if limit is not None:
        query = query.limit(limit)
    rows = conn.execute(query, {"key_run_id": run_id, "after": after})
    return [
        Event(seq=seq, at=at, body=from_stored(version, kind, attrs, payload))
        for seq, at, version, kind, attrs, payload in rows
    ]
