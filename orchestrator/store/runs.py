"""Runs: ``orchestrator_runs``.

Records from lists and from the sweep's questions come without ``input`` and ``result`` (empty and None):
payloads may be megabytes, and whoever asks for hundreds of runs needs none of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, desc, func, select, text, tuple_
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from orchestrator.model.records import Attention, RunRecord, RunStatus
from orchestrator.store.mapping import Updates, columns_of, expected, key, meets, record_or_none, records, values_of
from orchestrator.store.schema import FAILED_RUN, NEEDS_ATTENTION, OPEN_RUN
from orchestrator.store.schema import runs as table
from orchestrator.types import Micros

Cursor = tuple[Micros, str]
"""Where a page of a list ended: (created_at, run_id) of its last run."""

_COLUMNS = columns_of(table, RunRecord)
LIGHT_COLUMNS = columns_of(table, RunRecord, without={"input": b"", "result": None})
"""What lists and the sweep read."""

_FAILED = frozenset({RunStatus.FAILED, RunStatus.CANCELED, RunStatus.TERMINATED, RunStatus.TIMED_OUT})
_NEWEST_FIRST = (desc(table.c.created_at), desc(table.c.run_id))

# DO NOTHING covers every unique constraint: the open id and the start request. The caller looks up which.
_INSERT = {
    "postgresql": insert_postgresql(table).on_conflict_do_nothing(),
    "sqlite": insert_sqlite(table).on_conflict_do_nothing(),
}
_GET = select(*_COLUMNS).where(*key(table, "run_id"))
# What a decision was based on; read again inside SQLite's write transaction.
_VERSION = select(table.c.last_seq, table.c.decision_token).where(*key(table, "run_id"))
_FIND_OPEN = select(*_COLUMNS).where(*key(table, "namespace", "workflow_id"), text(OPEN_RUN))
_FIND_LATEST = select(*_COLUMNS).where(*key(table, "namespace", "workflow_id")).order_by(*_NEWEST_FIRST).limit(1)
_FIND_REQUEST = select(*_COLUMNS).where(*key(table, "namespace", "workflow_id", "request_id"))
_OPEN_LEAF = select(*_COLUMNS).where(*key(table, "lineage_id"), text(OPEN_RUN)).order_by(*_NEWEST_FIRST).limit(1)
_LATEST_OF_LINEAGE = select(*_COLUMNS).where(*key(table, "lineage_id")).order_by(*_NEWEST_FIRST).limit(1)
_UPDATES = Updates(table, "run_id")
# Rows that a decision or another sweep holds are passed over: both look after them themselves.
_DUE = (
    select(*LIGHT_COLUMNS)
    .where(table.c.next_send_at <= bindparam("now"))
    .order_by(table.c.next_send_at)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True, key_share=True)
)
_QUEUES_DUE = (
    select(table.c.queue)
    .where(table.c.next_send_at <= bindparam("now"))
    .order_by(table.c.next_send_at)
    .limit(bindparam("limit"))
)
# Read without a lock: the deadline becomes an inbox row, and senders never touch run rows (P2).
_PAST_DEADLINE = (
    select(*LIGHT_COLUMNS)
    .where(text(OPEN_RUN), table.c.deadline_at.is_not(None), table.c.deadline_at <= bindparam("now"))
    .order_by(table.c.deadline_at)
    .limit(bindparam("limit"))
)
_NEXT_DUE = (
    select(func.min(table.c.next_send_at)).where(table.c.next_send_at.is_not(None)),
    select(func.min(table.c.deadline_at)).where(text(OPEN_RUN), table.c.deadline_at.is_not(None)),
)


def insert(conn: Connection, run: RunRecord) -> bool:
    """Inserts a run; False when its workflow id is open already or its start request was made before.

    Waits for a concurrent insert of the same id to end. On False, look up which one is in the way by
    statements of their own.
    """
    return conn.execute(_INSERT[conn.dialect.name], values_of(run)).rowcount == 1


def get(conn: Connection, run_id: str) -> RunRecord | None:
    """Returns a run."""
    return record_or_none(RunRecord, conn.execute(_GET, {"key_run_id": run_id}))


def version(conn: Connection, run_id: str) -> tuple[int, str] | None:
    """Returns a run's (last_seq, decision_token), which every decision changes; None without such a run."""
    row = conn.execute(_VERSION, {"key_run_id": run_id}).first()
    return None if row is None else (row[0], row[1])


def find_open(conn: Connection, namespace: str, workflow_id: str) -> RunRecord | None:
    """Returns the open run of a workflow id."""
    return record_or_none(
        RunRecord, conn.execute(_FIND_OPEN, {"key_namespace": namespace, "key_workflow_id": workflow_id})
    )


def find_latest(conn: Connection, namespace: str, workflow_id: str) -> RunRecord | None:
    """Returns the newest run of a workflow id, open or closed."""
    return record_or_none(
        RunRecord, conn.execute(_FIND_LATEST, {"key_namespace": namespace, "key_workflow_id": workflow_id})
    )


def find_request(conn: Connection, namespace: str, workflow_id: str, request_id: str) -> RunRecord | None:
    """Returns the run that a start request made."""
    keys = {"key_namespace": namespace, "key_workflow_id": workflow_id, "key_request_id": request_id}
    return record_or_none(RunRecord, conn.execute(_FIND_REQUEST, keys))


def open_leaf(conn: Connection, lineage_id: str) -> RunRecord | None:
    """Returns the open run of a lineage. An empty answer is worth a second statement (P6)."""
    return record_or_none(RunRecord, conn.execute(_OPEN_LEAF, {"key_lineage_id": lineage_id}))


def latest_of_lineage(conn: Connection, lineage_id: str) -> RunRecord | None:
    """Returns the newest run of a lineage, open or closed."""
    return record_or_none(RunRecord, conn.execute(_LATEST_OF_LINEAGE, {"key_lineage_id": lineage_id}))


def update(conn: Connection, run_id: str, values: Mapping[str, Any], expect: Mapping[str, Any] | None = None) -> bool:
    """Sets columns of a run; False when there is no such run or it is not as expected.

    Args:
        conn: The connection.
        run_id: The run.
        values: New values by column.
        expect: Values the row must have; None means NULL, a collection means one of.
    """
    return _UPDATES.execute(conn, (run_id,), values, expect)


def list_runs(
    conn: Connection,
    namespace: str,
    *,
    status: RunStatus | Collection[RunStatus] | None = None,
    workflow_type: str | None = None,
    attention: Attention | None = None,
    workflow_id: str | None = None,
    limit: int,
    cursor: Cursor | None = None,
) -> list[RunRecord]:
    """Lists runs of a namespace, the newest first, without input and result.

    Args:
        conn: The connection.
        namespace: The namespace.
        status: One status or several.
        workflow_type: Only runs of this type.
        attention: Only runs with this attention.
        workflow_id: Only runs of this workflow id.
        limit: Most runs to return.
        cursor: ``(created_at, run_id)`` of the last run of the page before.
    """
    statuses = frozenset({status} if isinstance(status, str) else status or ())
    wanted = {
        "workflow_type": workflow_type,
        "attention": attention,
        "workflow_id": workflow_id,
        "status": statuses or None,
    }
    conditions = [table.c.namespace == namespace, *_repeated_predicates(statuses, attention)]
    narrowed = {name: value for name, value in wanted.items() if value is not None}
    conditions += meets(table, narrowed)
    if cursor is not None:
        conditions.append(_before(cursor))
    query = select(*LIGHT_COLUMNS).where(*conditions).order_by(*_NEWEST_FIRST).limit(limit)
    return records(RunRecord, conn.execute(query, expected(narrowed)))


def _repeated_predicates(statuses: frozenset[RunStatus], attention: Attention | None) -> list[ColumnElement[bool]]:
    # SQLite uses a partial index only where the query repeats its predicate.
    predicates = []
    if statuses and all(RunStatus(status).is_open for status in statuses):
        predicates.append(OPEN_RUN)
    if statuses and statuses <= _FAILED:
        predicates.append(FAILED_RUN)
    if attention is not None and attention is not Attention.NONE:
        predicates.append(NEEDS_ATTENTION)
    return [text(predicate) for predicate in predicates]  # type: ignore[misc]


def _before(cursor: Cursor) -> ColumnElement[bool]:
    created_at, run_id = cursor
    return tuple_(table.c.created_at, table.c.run_id) < tuple_(created_at, run_id)


def due(conn: Connection, now: Micros, limit: int) -> list[RunRecord]:
    """Returns runs to be woken again, locked to the end of the transaction, without input and result."""
    return records(RunRecord, conn.execute(_DUE, {"now": now, "limit": limit}))


def queues_due(conn: Connection, now: Micros, limit: int) -> set[str]:
    """Returns the queues of the runs to be woken again; locks nothing."""
    return set(conn.scalars(_QUEUES_DUE, {"now": now, "limit": limit}))


def past_deadline(conn: Connection, now: Micros, limit: int) -> list[RunRecord]:
    """Returns open runs whose deadline has passed, without input and result; not locked."""
    return records(RunRecord, conn.execute(_PAST_DEADLINE, {"now": now, "limit": limit}))


def next_due(conn: Connection) -> Micros | None:
    """Returns when the next run is due to be woken again or reaches its deadline."""
    found = [instant for query in _NEXT_DUE if (instant := conn.scalar(query)) is not None]
    return min(found, default=None)
