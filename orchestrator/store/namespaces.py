"""Namespaces: ``orchestrator_namespaces``, noted at their first use."""

from __future__ import annotations

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from orchestrator.store.schema import namespaces as table
from orchestrator.types import Micros

_INSERT = {
    "postgresql": insert_postgresql(table).on_conflict_do_nothing(),
    "sqlite": insert_sqlite(table).on_conflict_do_nothing(),
}
_ALL = select(table.c.name).order_by(table.c.name)


def note(conn: Connection, name: str, now: Micros) -> bool:
    """Notes a namespace; False when it was known."""
    return conn.execute(_INSERT[conn.dialect.name], {"name": name, "created_at": now}).rowcount == 1


def all(conn: Connection) -> list[str]:  # noqa: A001 - read as namespaces.all(conn)
    """Returns the names of all namespaces."""
    return list(conn.scalars(_ALL))
