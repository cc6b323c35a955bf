"""The version of the schema: looking at it, upgrading it, creating it.

A revision is named ``NNNN_MMMM``: its own number, and the number of the oldest revision whose code still
runs on it. So a schema that is ahead of the code is fine as long as the code is not older than ``MMMM``:
migrations run first, workers are replaced after, and one that restarts in between goes on.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from orchestrator.errors import SchemaOutdated
from orchestrator.store import sweeps
from orchestrator.store.database import Database
from orchestrator.store.failures import MIGRATE
from orchestrator.store.schema import POSTGRESQL_STORAGE, metadata

if TYPE_CHECKING:
    from alembic.config import Config

HEAD: Final = "0001_0001"
"""The revision that this version of the library needs."""

VERSION_TABLE: Final = "orchestrator_schema_version"
"""Our own, so that the team's migrations keep theirs."""

_DIALECTS: Final[dict[str, Any]] = {"postgresql": postgresql.dialect, "sqlite": sqlite.dialect}
# One migration at a time on a database, whoever starts it.
_LOCK: Final = text("SELECT pg_advisory_xact_lock(7012290718093562721)")


def check(database: Database) -> None:
    """Checks that the schema is one that this version can work with.

    Raises:
        SchemaOutdated: It is missing, behind, or too far ahead; the message says what to do.
        Interrupted: The database could not be reached.
    """
    found = current(database)
    if found == HEAD:
        return
    if found is None:
        raise SchemaOutdated(f"{database!r} has no tables for workflows yet; {MIGRATE}")
    number, oldest = _parts(found)
    mine, _ = _parts(HEAD)
    if number < mine:
        raise SchemaOutdated(f"The schema of {database!r} is at revision {found}, but {HEAD} is needed; {MIGRATE}")
    if oldest > mine:
        raise SchemaOutdated(
            f"The schema of {database!r} is at revision {found}, too new for this version of celery-orchestrator "
            f"({HEAD}); upgrade the package"
        )


def _parts(revision: str) -> tuple[int, int]:
    try:
        number, oldest = revision.split("_")
        return int(number), int(oldest)
    except ValueError:
        raise SchemaOutdated(f"{VERSION_TABLE} holds {revision!r}, which is no revision of ours") from None


def current(database: Database) -> str | None:
    """Returns the revision of the schema; None when there is none."""
    with database.read() as conn:
        return _current(conn)


def _current(conn: Connection) -> str | None:
    if not inspect(conn).has_table(VERSION_TABLE):
        return None
    found: str | None = conn.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
    return found


def upgrade(database: Database | str, revision: str = "head") -> None:
    """Upgrades the schema, creating it when there is none; safe to call from several processes at once.

    Args:
        database: The database, or its URL.
        revision: Where to stop.

    Raises:
        ConfigurationError: The URL is wrong or not supported.
        Unavailable: The database could not be reached.
    """
    from alembic import command

    if isinstance(database, str):
        opened = Database.open(database)
        try:
            return upgrade(opened, revision)
        finally:
            opened.dispose()
    database.run(lambda conn: command.upgrade(alembic_config(conn), revision), what="migrate")
    return None


def alembic_config(conn: Connection) -> Config:
    """Returns alembic's configuration of our migrations, on a connection whose transaction they join."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = conn
    if conn.dialect.name == "postgresql":
        # DDL on a busy database waits in line longer than our statements usually may.
        conn.execute(text("SET LOCAL lock_timeout TO '60s'; SET LOCAL statement_timeout TO 0"))
        conn.execute(_LOCK)
    return config


def create(database: Database) -> None:
    """Creates the whole schema at once if there is none: what an embedded database does by itself.

    Much faster than the chain of migrations, and a test holds the two equal.
    """
    if current(database) is None:
        database.run(_create, what="create the schema")


def _create(conn: Connection) -> None:
    if conn.dialect.name == "postgresql":
        conn.execute(_LOCK)
    if _current(conn) is not None:
        return
    for statement in _statements(conn.dialect.name):
        conn.exec_driver_sql(statement)
    conn.execute(text(f"INSERT INTO {VERSION_TABLE} VALUES (:head)"), {"head": HEAD})  # noqa: S608
    sweeps.insert_row(conn)


@lru_cache
def _statements(database: str) -> tuple[str, ...]:
    # Compiled once a process: a test suite creates a database in memory for each of its tests.
    dialect = _DIALECTS[database]()
    tables = metadata.sorted_tables
    elements: list[CreateTable | CreateIndex] = [CreateTable(table) for table in tables]
    for table in tables:
        elements += [CreateIndex(index) for index in sorted(table.indexes, key=lambda index: str(index.name))]
    storage = (
        f"ALTER TABLE {table.name} SET ({', '.join(f'{name} = {value}' for name, value in options.items())})"
        for table, options in POSTGRESQL_STORAGE.items()
        if database == "postgresql"
    )
    version = f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
    return (*(str(element.compile(dialect=dialect)) for element in elements), *storage, version)
