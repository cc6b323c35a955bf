"""The sweep's one row: ``orchestrator_sweep``.

It says when the last tick was, so that ticks of several sweepers don't pile up, and it holds the sweep's
clock, on which liveness and heartbeats are measured (P7). Each tick moves the clock forward by the time
since the last tick, but by at most two intervals: while the database or every sweeper was down it stands
still, and nobody is declared dead for what could not be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from orchestrator.store import activities
from orchestrator.store.schema import sweep as table
from orchestrator.types import Micros

_HEARTBEATS: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    """A tick that may go ahead: the clock after it, and when it and the one before were."""

    clock: Micros
    at: Micros
    previous_at: Micros | None


_GET = select(table.c.clock_us, table.c.ticked_at).where(table.c.id == 1)
# A sweeper that finds the row taken ends: two beats are harmless.
_TAKE = _GET.with_for_update(skip_locked=True, key_share=True)
_SET = update(table).where(table.c.id == 1)
_FIRST_ROW = {"id": 1, "clock_us": 0, "ticked_at": None}
_INSERT = {
    "postgresql": insert_postgresql(table).on_conflict_do_nothing(),
    "sqlite": insert_sqlite(table).on_conflict_do_nothing(),
}
CLOCK: Final = select(table.c.clock_us).where(table.c.id == 1).scalar_subquery()
"""The clock's reading as part of another statement."""


def insert_row(conn: Connection) -> None:
    """Inserts the row if it is missing."""
    conn.execute(_INSERT[conn.dialect.name], _FIRST_ROW)


def tick(conn: Connection, now: Micros, interval_us: Micros) -> Tick | None:
    """Begins a tick.

    Args:
        conn: The connection of a write transaction.
        now: The present instant.
        interval_us: The interval of the sweep. A tick is due after four fifths of it, since a caller that
            comes once an interval is a little early every other time.

    Returns:
        None when another sweeper is beginning one, or it is not due yet.
    """
    row = conn.execute(_TAKE).first()
    if row is None:
        if conn.execute(_GET).first() is None:
            insert_row(conn)
            return tick(conn, now, interval_us)
        return None
    clock, previous = row
    elapsed = interval_us if previous is None else now - previous
    # A database clock that was set back makes the time since then negative: that must not stop the sweep.
    if 0 <= elapsed < interval_us * 4 // 5:
        return None
    clock += max(0, min(elapsed, 2 * interval_us))
    conn.execute(_SET, {"clock_us": clock, "ticked_at": now})
    activities.move_heartbeat_checks(conn, clock, _HEARTBEATS)
    return Tick(clock=clock, at=now, previous_at=previous)


def clock(conn: Connection) -> Micros:
    """Returns the reading of the sweep's clock."""
    found: Micros | None = conn.scalar(select(CLOCK))
    return found or 0


def last_tick(conn: Connection) -> Micros | None:
    """Returns when the last tick was; None before the first."""
    row = conn.execute(_GET).first()
    return None if row is None else row[1]
