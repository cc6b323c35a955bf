"""Timers: ``orchestrator_timers``. The row is the truth; firing is deleting it, so there is one winner (P8)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, bindparam, func, select, tuple_
from sqlalchemy import delete as sql_delete
from sqlalchemy import insert as sql_insert

from orchestrator.store.mapping import batches, key
from orchestrator.store.schema import timers as table
from orchestrator.types import Micros

Timer = tuple[str, int, Micros]
"""(run id, number, due_at)."""

_INSERT = sql_insert(table)
_DELETE = sql_delete(table).where(*key(table, "run_id"), table.c.number.in_(bindparam("numbers", expanding=True)))
_DELETE_ALL = sql_delete(table).where(*key(table, "run_id"))
_OF_RUN = select(table.c.run_id, table.c.number, table.c.due_at).where(*key(table, "run_id")).order_by(table.c.number)
_DUE = (
    select(table.c.run_id, table.c.number)
    .where(table.c.due_at <= bindparam("now"))
    .order_by(table.c.due_at)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
    .cte("due", nesting=True)
)
# One statement, so that a timer is never read by one sweep and deleted by another.
_POP_DUE = (
    sql_delete(table)
    .where(tuple_(table.c.run_id, table.c.number).in_(select(_DUE.c.run_id, _DUE.c.number)))
    .returning(table.c.run_id, table.c.number, table.c.due_at)
)
_NEXT_DUE = select(func.min(table.c.due_at))


def insert(conn: Connection, timers: Sequence[Timer]) -> None:
    """Opens timers."""
    if timers:
        conn.execute(
            _INSERT, [{"run_id": run_id, "number": number, "due_at": due_at} for run_id, number, due_at in timers]
        )


def delete(conn: Connection, run_id: str, numbers: Collection[int]) -> int:
    """Cancels timers of a run and returns how many there still were."""
    return sum(conn.execute(_DELETE, {"key_run_id": run_id, "numbers": batch}).rowcount for batch in batches(numbers))


def delete_all(conn: Connection, run_id: str) -> int:
    """Cancels all timers of a run and returns how many there were."""
    return conn.execute(_DELETE_ALL, {"key_run_id": run_id}).rowcount


def pop_due(conn: Connection, now: Micros, limit: int) -> list[Timer]:
    """Deletes timers that are due and returns them by (due_at, run id, number): the caller fires them.

    Timers that another sweep is popping, or that a decision cancels, are passed over.
    """
    rows = conn.execute(_POP_DUE, {"now": now, "limit": limit})
    return sorted(((row.run_id, row.number, row.due_at) for row in rows), key=lambda timer: (timer[2], timer))


def of_run(conn: Connection, run_id: str) -> list[Timer]:
    """Returns the open timers of a run by number."""
    return [(row.run_id, row.number, row.due_at) for row in conn.execute(_OF_RUN, {"key_run_id": run_id})]


def next_due(conn: Connection) -> Micros | None:
    """Returns when the next timer is due."""
    found: Micros | None = conn.scalar(_NEXT_DUE)
    return found
