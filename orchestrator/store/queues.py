"""How far queues were consumed: ``orchestrator_queues``; and what waits on them, for ``doctor``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, select, text, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from orchestrator.store.mapping import batches, key
from orchestrator.store.schema import SCHEDULED, activities, runs
from orchestrator.store.schema import queues as table
from orchestrator.types import Micros


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """What waits on a queue for a worker: attempts, runs never decided, and since when."""

    queue: str
    activities: int = 0
    runs: int = 0
    oldest_at: Micros | None = None


_INSERT = {
    "postgresql": insert_postgresql(table).on_conflict_do_nothing(),
    "sqlite": insert_sqlite(table).on_conflict_do_nothing(),
}
_EXISTS = select(table.c.queue).where(*key(table, "queue"))
# Passed over when somebody else is writing it: a claim must never wait for this row, and a second's delay
# of the note does not matter.
_BEHIND = (
    select(table.c.queue)
    .where(*key(table, "queue"), table.c.progress_at < bindparam("reached"))
    .with_for_update(skip_locked=True, key_share=True)
    .cte("behind", nesting=True)
)
_ADVANCE = update(table).where(table.c.queue.in_(select(_BEHIND.c.queue))).values(progress_at=bindparam("reached"))
_ACTIVITIES = (
    select(activities.c.queue, func.count(), func.min(activities.c.attempt_scheduled_at))
    .where(text(SCHEDULED))
    .group_by(activities.c.queue)
)
# The literal and next_send_at let both databases use the sweep's index: a pending run is always in it.
_RUNS = (
    select(runs.c.queue, func.count(), func.min(runs.c.created_at))
    .where(runs.c.next_send_at.is_not(None), text("status = 'PENDING'"))
    .group_by(runs.c.queue)
)


def note_progress(conn: Connection, queue: str, published_at: Micros) -> None:
    """Notes that a message published at that instant on that queue was claimed; never goes back."""
    keys = {"key_queue": queue, "reached": published_at}
    if conn.execute(_ADVANCE, keys).rowcount == 0 and conn.execute(_EXISTS, keys).first() is None:
        conn.execute(_INSERT[conn.dialect.name], {"queue": queue, "progress_at": published_at})


def progress(conn: Connection, queues: Collection[str]) -> dict[str, Micros]:
    """Returns the newest publish time among the claimed messages of each queue that has any."""
    found: dict[str, Micros] = {}
    for batch in batches(queues):
        rows = conn.execute(select(table.c.queue, table.c.progress_at).where(table.c.queue.in_(batch)))
        found |= {row.queue: row.progress_at for row in rows}
    return found


def waiting(conn: Connection) -> dict[str, Waiting]:
    """Returns what waits, by queue. Reads every waiting row: for people, not for hot paths."""
    attempts = {queue: (count, oldest) for queue, count, oldest in conn.execute(_ACTIVITIES)}
    pending = {queue: (count, oldest) for queue, count, oldest in conn.execute(_RUNS)}
    return {
        queue: Waiting(
            queue=queue,
            activities=attempts.get(queue, (0, None))[0],
            runs=pending.get(queue, (0, None))[0],
            oldest_at=min(found[queue][1] for found in (attempts, pending) if queue in found),
        )
        for queue in sorted(attempts.keys() | pending.keys())
    }
