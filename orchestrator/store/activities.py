"""Activities: ``orchestrator_activities``, one row for all attempts (P7).

Records from the sweep's questions come without ``input`` (empty bytes). Only those to be sent are locked:
what ends an attempt locks the row by itself and looks whether it is still the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    text,
    tuple_,
)
from sqlalchemy import insert as sql_insert
from sqlalchemy import update as sql_update

from orchestrator.model.records import ActivityRecord, ActivityState
from orchestrator.store.mapping import Updates, columns_of, key, record_or_none, records, values_of
from orchestrator.store.schema import OPEN_ACTIVITY, SCHEDULED, STARTED
from orchestrator.store.schema import activities as table
from orchestrator.types import Micros

_COLUMNS = columns_of(table, ActivityRecord)
_LIGHT_COLUMNS = columns_of(table, ActivityRecord, without={"input": b""})
_PRIMARY_KEY = tuple_(table.c.run_id, table.c.number)

_INSERT = sql_insert(table)
_GET = select(*_COLUMNS).where(*key(table, "run_id", "number"))
_LOCK = _GET.with_for_update()
_OF_RUN = select(*_COLUMNS).where(*key(table, "run_id")).order_by(table.c.number)
_OPEN_OF_RUN = _OF_RUN.where(text(OPEN_ACTIVITY))
# The index entry is set by a claim, cleared with the attempt, and left alone by heartbeats: a check that comes
# too early finds the attempt beating and moves on.
_CHECK_CLOCK = case(
    (bindparam("new_heartbeat_due_clock", type_=BigInteger).is_(None), None),
    else_=func.coalesce(table.c.heartbeat_check_clock, bindparam("new_heartbeat_due_clock", type_=BigInteger)),
)
_UPDATES = Updates(table, "run_id", "number", computed={"heartbeat_due_clock": ("heartbeat_check_clock", _CHECK_CLOCK)})
_CLOSE_ALL = (
    sql_update(table)
    .where(*key(table, "run_id"), text(OPEN_ACTIVITY))
    .values(
        state=ActivityState.CANCELED,
        closed_at=bindparam("now"),
        token=None,
        next_send_at=None,
        deadline_at=None,
        heartbeat_due_clock=None,
        heartbeat_check_clock=None,
    )
)


def _question(*conditions: Any, order: ColumnElement[Any]) -> Select[Any]:
    return select(*_LIGHT_COLUMNS).where(*conditions).order_by(order).limit(bindparam("limit"))


# Rows that another sweep is sending, or a claim or cancellation holds, are passed over.
_DUE_TO_SEND = _question(
    text(SCHEDULED), table.c.next_send_at <= bindparam("now"), order=table.c.next_send_at
).with_for_update(skip_locked=True)
_QUEUES_DUE = (
    select(table.c.queue)
    .where(text(SCHEDULED), table.c.next_send_at <= bindparam("now"), table.c.send_count > 0)
    .order_by(table.c.next_send_at)
    .limit(bindparam("limit"))
)
_PAST_DEADLINE = _question(
    text(OPEN_ACTIVITY),
    table.c.deadline_at.is_not(None),
    table.c.deadline_at <= bindparam("now"),
    order=table.c.deadline_at,
)
_HEARTBEAT_CHECKED = (text(STARTED), table.c.heartbeat_check_clock <= bindparam("clock"))
_HEARTBEAT_OVERDUE = _question(
    *_HEARTBEAT_CHECKED, table.c.heartbeat_due_clock <= bindparam("clock"), order=table.c.heartbeat_check_clock
)
_BEATING = (
    select(table.c.run_id, table.c.number)
    .where(*_HEARTBEAT_CHECKED, table.c.heartbeat_due_clock > bindparam("clock"))
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
    .cte("beating", nesting=True)
)
_MOVE_HEARTBEAT_CHECKS = (
    sql_update(table)
    .where(_PRIMARY_KEY.in_(select(_BEATING.c.run_id, _BEATING.c.number)))
    .values(heartbeat_check_clock=table.c.heartbeat_due_clock)
)
_NEXT_DUE = (
    select(func.min(table.c.next_send_at)).where(text(SCHEDULED)),
    select(func.min(table.c.deadline_at)).where(text(OPEN_ACTIVITY), table.c.deadline_at.is_not(None)),
)
_NEXT_HEARTBEAT_CHECK = select(func.min(table.c.heartbeat_check_clock)).where(text(STARTED))
# The distinct workers by one index probe each; DISTINCT would read every started row.
_FIRST_WORKER = select(func.min(table.c.worker_id)).where(text(STARTED))
_FOUND = _FIRST_WORKER.cte("found", recursive=True)
_NEXT_WORKER = _FIRST_WORKER.where(table.c.worker_id > _FOUND.c[0]).scalar_subquery()
_ALL_FOUND = _FOUND.union_all(select(_NEXT_WORKER).where(_FOUND.c[0].is_not(None)))
_STARTED_WORKERS = select(_ALL_FOUND.c[0]).where(_ALL_FOUND.c[0].is_not(None))


def insert(conn: Connection, activities: Sequence[ActivityRecord]) -> None:
    """Inserts activities."""
    if activities:
        conn.execute(_INSERT, [_with_check(values_of(activity)) for activity in activities])


def _with_check(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "heartbeat_check_clock": values["heartbeat_due_clock"]}


def get(conn: Connection, run_id: str, number: int) -> ActivityRecord | None:
    """Returns an activity."""
    return record_or_none(ActivityRecord, conn.execute(_GET, {"key_run_id": run_id, "key_number": number}))


def lock(conn: Connection, run_id: str, number: int) -> ActivityRecord | None:
    """Returns an activity, locked to the end of the transaction; waits for whoever holds it."""
    return record_or_none(ActivityRecord, conn.execute(_LOCK, {"key_run_id": run_id, "key_number": number}))


def update(
    conn: Connection, run_id: str, number: int, values: Mapping[str, Any], expect: Mapping[str, Any] | None = None
) -> bool:
    """Sets columns of an activity; False when there is none or it is not as expected.

    Args:
        conn: The connection.
        run_id: The run.
        number: The activity's number.
        values: New values by column.
        expect: Values the row must have; None means NULL, a collection means one of.
    """
    return _UPDATES.execute(conn, (run_id, number), values, expect)


def of_run(conn: Connection, run_id: str) -> list[ActivityRecord]:
    """Returns all activities of a run by number."""
    return records(ActivityRecord, conn.execute(_OF_RUN, {"key_run_id": run_id}))


def open_of_run(conn: Connection, run_id: str) -> list[ActivityRecord]:
    """Returns the scheduled and started activities of a run by number."""
    return records(ActivityRecord, conn.execute(_OPEN_OF_RUN, {"key_run_id": run_id}))


def close_all(conn: Connection, run_id: str, now: Micros) -> int:
    """Cancels the open activities of a run that ends, and returns how many there were."""
    return conn.execute(_CLOSE_ALL, {"key_run_id": run_id, "now": now}).rowcount


def due_to_send(conn: Connection, now: Micros, limit: int) -> list[ActivityRecord]:
    """Returns scheduled activities whose message is to be sent (again), locked to the end of the transaction."""
    return records(ActivityRecord, conn.execute(_DUE_TO_SEND, {"now": now, "limit": limit}))


def queues_due(conn: Connection, now: Micros, limit: int) -> set[str]:
    """Returns the queues of scheduled activities whose message is to be sent again; locks nothing."""
    return set(conn.scalars(_QUEUES_DUE, {"now": now, "limit": limit}))


def past_deadline(conn: Connection, now: Micros, limit: int) -> list[ActivityRecord]:
    """Returns open activities whose earliest deadline has passed."""
    return records(ActivityRecord, conn.execute(_PAST_DEADLINE, {"now": now, "limit": limit}))


def heartbeat_overdue(conn: Connection, clock: Micros, limit: int) -> list[ActivityRecord]:
    """Returns started activities whose heartbeat is overdue on the sweep's clock."""
    return records(ActivityRecord, conn.execute(_HEARTBEAT_OVERDUE, {"clock": clock, "limit": limit}))


def move_heartbeat_checks(conn: Connection, clock: Micros, limit: int) -> int:
    """Moves index entries that came due to where the heartbeats are by now; returns how many.

    Heartbeats leave the index alone, so without this the question above reads every beating activity.
    """
    return conn.execute(_MOVE_HEARTBEAT_CHECKS, {"clock": clock, "limit": limit}).rowcount


def started_by(
    conn: Connection,
    worker_id: str,
    *,
    not_pids: Collection[tuple[int, int]] | None = None,
    claimed_before_clock: Micros | None = None,
    limit: int,
) -> list[ActivityRecord]:
    """Returns started activities of a worker.

    Args:
        conn: The connection.
        worker_id: The worker.
        not_pids: Leaves out those claimed by these processes, given as (pid, start time).
        claimed_before_clock: Leaves out those claimed at this sweep-clock reading or later.
        limit: Most activities to return.
    """
    conditions: list[Any] = [text(STARTED), table.c.worker_id == worker_id]
    if not_pids:
        conditions.append(or_(table.c.pid.is_(None), ~_claimed_by(not_pids)))
    if claimed_before_clock is not None:
        conditions.append(table.c.claim_clock < claimed_before_clock)
    return records(ActivityRecord, conn.execute(_question(*conditions, order=table.c.number), {"limit": limit}))


def _claimed_by(pids: Collection[tuple[int, int]]) -> ColumnElement[bool]:
    # A claim that does not know its process's start time is matched by pid alone.
    started = func.coalesce(table.c.pid_started, literal_column("-1"))
    alone = and_(started == -1, table.c.pid.in_([pid for pid, _ in pids]))
    return or_(alone, tuple_(table.c.pid, started).in_(list(pids)))


def started_by_unknown(conn: Connection, known_worker_ids: Collection[str], limit: int) -> list[ActivityRecord]:
    """Returns started activities of workers that are not among the known ones."""
    found: list[ActivityRecord] = []
    for worker_id in sorted(set(conn.scalars(_STARTED_WORKERS)) - set(known_worker_ids)):
        if len(found) >= limit:
            break
        found += started_by(conn, worker_id, limit=limit - len(found))
    return found


def next_due(conn: Connection) -> Micros | None:
    """Returns when the next activity is due to be sent or reaches a deadline; heartbeats are not asked."""
    instants = [instant for query in _NEXT_DUE if (instant := conn.scalar(query)) is not None]
    return min(instants, default=None)


def next_heartbeat_check(conn: Connection) -> Micros | None:
    """Returns the sweep-clock reading at which a heartbeat may be overdue at the earliest."""
    found: Micros | None = conn.scalar(_NEXT_HEARTBEAT_CHECK)
    return found
