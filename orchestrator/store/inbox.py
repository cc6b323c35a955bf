"""Inboxes: ``orchestrator_inbox``, what everybody but decisions writes (P2).

Rows are drained by id, exactly those that were read. Ids are given before they are committed, so a lower
id may appear after a higher one was drained: there is no high-water mark.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, select, update
from sqlalchemy import delete as sql_delete
from sqlalchemy import insert as sql_insert

from orchestrator.model.records import InboxKind, InboxRow, RunRecord
from orchestrator.store.mapping import batches, columns_of, key, record_or_none, records
from orchestrator.store.runs import LIGHT_COLUMNS
from orchestrator.store.schema import inbox as table
from orchestrator.store.schema import runs as runs_table
from orchestrator.types import Attributes, Micros


@dataclass(frozen=True, kw_only=True, slots=True)
class DueInbox:
    """A run whose inbox waits for a decision for too long.

    ``run`` comes without input and result. Of its due rows, ``created_at`` is that of the oldest,
    ``published_at`` and ``send_count`` are those of the latest wake-up.
    """

    run: RunRecord
    created_at: Micros
    published_at: Micros
    send_count: int

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id


_INSERT = sql_insert(table).returning(table.c.id)
_READ = select(*columns_of(table, InboxRow)).where(*key(table, "run_id")).order_by(table.c.id).limit(bindparam("limit"))
_OF_KINDS = (
    select(*columns_of(table, InboxRow))
    .where(*key(table, "run_id"), table.c.kind.in_(bindparam("kinds", expanding=True)))
    .order_by(table.c.id)
    .limit(1)
)
_HAS_OLDER = (
    select(table.c.id)
    .where(*key(table, "run_id"), table.c.id < bindparam("id"), table.c.created_at >= bindparam("created_after"))
    .limit(1)
)
# Counting stops at the bound: a full inbox must not make every refused signal slow.
_COUNT = select(func.count()).select_from(
    select(table.c.id).where(*key(table, "run_id")).limit(bindparam("at_most")).subquery()
)
_EXISTS = select(table.c.id).where(*key(table, "run_id")).limit(1)
_DELETE = sql_delete(table).where(table.c.id.in_(bindparam("ids", expanding=True)))
_DELETE_ALL = sql_delete(table).where(*key(table, "run_id"))
# Not locked: a wake-up too many is a no-op, and a decision that drains must not wait for the sweep.
_DUE = (
    select(table.c.run_id, table.c.created_at, table.c.published_at, table.c.send_count)
    .where(table.c.next_send_at <= bindparam("now"))
    .order_by(table.c.next_send_at)
    .limit(bindparam("limit"))
)
_QUEUES_DUE = select(runs_table.c.queue).where(
    runs_table.c.run_id.in_(
        select(table.c.run_id)
        .where(table.c.next_send_at <= bindparam("now"))
        .order_by(table.c.next_send_at)
        .limit(bindparam("limit"))
    )
)
# Rows that a decision is draining are passed over, as it would delete them anyway.
_POSTPONED = (
    select(table.c.id)
    .where(*key(table, "run_id"), table.c.next_send_at <= bindparam("now"))
    .with_for_update(skip_locked=True, key_share=True)
)
_POSTPONE = (
    update(table)
    .where(table.c.id.in_(select(_POSTPONED.cte("postponed", nesting=True).c.id)))
    .values(next_send_at=bindparam("new_next_send_at"))
)
_SENT_AGAIN = _POSTPONE.values(send_count=table.c.send_count + 1, published_at=bindparam("now"))
_NEXT_DUE = select(func.min(table.c.next_send_at))


def insert(
    conn: Connection,
    run_id: str,
    kind: InboxKind,
    *,
    number: int | None = None,
    attrs: Attributes | None = None,
    payload: bytes | None = None,
    now: Micros,
    next_send_at: Micros,
) -> int:
    """Adds a row to a run's inbox and returns its id; takes no lock on the run.

    Args:
        conn: The connection.
        run_id: The run.
        kind: What it tells the run.
        number: Number of the timer or activity it is about.
        attrs: JSON facts.
        payload: Encoded bytes.
        now: The present instant; the caller wakes the run right after its commit.
        next_send_at: When the sweep wakes the run again if the row is still there.
    """
    values = {
        "run_id": run_id,
        "kind": kind,
        "created_at": now,
        "number": number,
        "attrs": attrs or {},
        "payload": payload,
        "published_at": now,
        "next_send_at": next_send_at,
        "send_count": 0,
    }
    return int(conn.execute(_INSERT, values).scalar_one())


def read(conn: Connection, run_id: str, limit: int, exclude: Collection[int] = ()) -> list[InboxRow]:
    """Returns the oldest rows of a run, by id, without those in ``exclude``."""
    query = _READ.where(table.c.id.not_in(list(exclude))) if exclude else _READ
    return records(InboxRow, conn.execute(query, {"key_run_id": run_id, "limit": limit}))


def first_of(conn: Connection, run_id: str, kinds: Collection[InboxKind]) -> InboxRow | None:
    """Returns the oldest row of a run of these kinds."""
    return record_or_none(InboxRow, conn.execute(_OF_KINDS, {"key_run_id": run_id, "kinds": list(kinds)}))


def has_older(conn: Connection, run_id: str, row_id: int, created_after: Micros) -> bool:
    """Tells whether a row with a lower id, created at ``created_after`` or later, is still undrained.

    Ask after the commit of one's own row: whoever drains that older row then re-reads later than this.
    """
    found = conn.execute(_HAS_OLDER, {"key_run_id": run_id, "id": row_id, "created_after": created_after})
    return found.first() is not None


def count(conn: Connection, run_id: str, at_most: int) -> int:
    """Returns the number of rows of a run, counted up to ``at_most``."""
    return int(conn.execute(_COUNT, {"key_run_id": run_id, "at_most": at_most}).scalar_one())


def exists(conn: Connection, run_id: str) -> bool:
    """Tells whether a run has any row."""
    return conn.execute(_EXISTS, {"key_run_id": run_id}).first() is not None


def delete(conn: Connection, ids: Collection[int]) -> int:
    """Deletes rows and returns how many there were; another number than asked for means: roll back."""
    return sum(conn.execute(_DELETE, {"ids": batch}).rowcount for batch in batches(ids))


def delete_all(conn: Connection, run_id: str) -> int:
    """Deletes all rows of a run and returns how many there were."""
    return conn.execute(_DELETE_ALL, {"key_run_id": run_id}).rowcount


def due(conn: Connection, now: Micros, limit: int) -> list[DueInbox]:
    """Returns runs whose inbox holds rows that are due to be sent again.

    Args:
        conn: The connection.
        now: The present instant.
        limit: Most inbox rows to look at; a shorter answer says nothing about there being more.
    """
    rows: dict[str, list[tuple[Micros, Micros, int]]] = {}
    for run_id, *facts in conn.execute(_DUE, {"now": now, "limit": limit}):
        rows.setdefault(run_id, []).append((facts[0], facts[1], facts[2]))
    found = _runs(conn, list(rows))
    for orphan in rows.keys() - found.keys():
        # The run was deleted by retention; what came for it later would be due for ever.
        delete_all(conn, orphan)
    return [
        DueInbox(
            run=found[run_id],
            created_at=min(fact[0] for fact in facts),
            published_at=max(fact[1] for fact in facts),
            send_count=max(fact[2] for fact in facts),
        )
        for run_id, facts in rows.items()
        if run_id in found
    ]


def queues_due(conn: Connection, now: Micros, limit: int) -> set[str]:
    """Returns the queues of the runs whose inbox holds rows that are due to be sent again; locks nothing."""
    return set(conn.scalars(_QUEUES_DUE, {"now": now, "limit": limit}))


def _runs(conn: Connection, run_ids: Sequence[str]) -> dict[str, RunRecord]:
    found: dict[str, RunRecord] = {}
    for batch in batches(run_ids):
        rows = conn.execute(select(*LIGHT_COLUMNS).where(runs_table.c.run_id.in_(batch)))
        found |= {run.run_id: run for run in records(RunRecord, rows)}
    return found


def postpone(conn: Connection, run_id: str, now: Micros, next_send_at: Micros, *, sent: bool = True) -> int:
    """Notes when to look at a run's due rows next, and whether they were sent again now; returns their number."""
    return conn.execute(
        _SENT_AGAIN if sent else _POSTPONE, {"key_run_id": run_id, "now": now, "new_next_send_at": next_send_at}
    ).rowcount


def next_due(conn: Connection) -> Micros | None:
    """Returns when the next inbox row is due to be sent again."""
    found: Micros | None = conn.scalar(_NEXT_DUE)
    return found
