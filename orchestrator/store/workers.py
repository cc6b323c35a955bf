"""Signs of life of worker processes: ``orchestrator_workers``, a row each (P7)."""

from __future__ import annotations

from sqlalchemy import Connection, func, select
from sqlalchemy import delete as sql_delete
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from orchestrator.model.records import WorkerRecord
from orchestrator.store.mapping import columns_of, key, record_or_none, records, values_of
from orchestrator.store.schema import workers as table
from orchestrator.store.sweeps import CLOCK

_COLUMNS = columns_of(table, WorkerRecord)
_ALL = select(*_COLUMNS).order_by(table.c.worker_id)
_GET = select(*_COLUMNS).where(*key(table, "worker_id"))
_DELETE = sql_delete(table).where(*key(table, "worker_id"))


def upsert(conn: Connection, worker: WorkerRecord) -> None:
    """Writes a worker's sign of life.

    ``seen_clock`` of the record is ignored: it becomes the sweep's clock as read by this very statement, so
    that a sign of life that was long under way is not taken for a fresh one.
    """
    values = {**values_of(worker), "seen_clock": func.coalesce(CLOCK, 0)}
    if conn.dialect.name == "postgresql":
        postgresql = insert_postgresql(table).values(values)
        conn.execute(
            postgresql.on_conflict_do_update(
                index_elements=["worker_id"],
                set_={name: column for name, column in postgresql.excluded.items() if name != "worker_id"},
            )
        )
    else:
        sqlite = insert_sqlite(table).values(values)
        conn.execute(
            sqlite.on_conflict_do_update(
                index_elements=["worker_id"],
                set_={name: column for name, column in sqlite.excluded.items() if name != "worker_id"},
            )
        )


def all(conn: Connection) -> list[WorkerRecord]:  # noqa: A001 - read as workers.all(conn)
    """Returns all workers by id."""
    return records(WorkerRecord, conn.execute(_ALL))


def get(conn: Connection, worker_id: str) -> WorkerRecord | None:
    """Returns a worker."""
    return record_or_none(WorkerRecord, conn.execute(_GET, {"key_worker_id": worker_id}))


def delete(conn: Connection, worker_id: str) -> bool:
    """Forgets a worker; False when it was not known."""
    return conn.execute(_DELETE, {"key_worker_id": worker_id}).rowcount == 1
