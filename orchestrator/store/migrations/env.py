"""Runs the migrations on the connection that was put into the configuration; see ``store/migrate.py``."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, Engine

from orchestrator.store.migrate import VERSION_TABLE
from orchestrator.store.schema import metadata


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        compare_type=True,
        include_name=lambda name, kind, _parents: kind != "table" or name in metadata.tables,
    )
    with context.begin_transaction():
        context.run_migrations()


def _main() -> None:
    given = context.config.attributes["connection"]
    if isinstance(given, Engine):
        with given.begin() as connection:
            _run(connection)
    else:
        _run(given)


_main()
