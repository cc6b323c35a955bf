"""SQLAlchemy engines with the session settings that the protocol needs.

PostgreSQL sessions get, at connect, time-outs for everything that could keep a lock for ever: a holder
that was stopped (SIGSTOP), whose machine vanished, or that waits for a lock or a statement without end.
Behind pgbouncer in transaction mode a session setting reaches only one server connection; set the same
ones by ``ALTER ROLE … SET`` there (:func:`session_settings` tells what is in force).

SQLite runs in WAL mode with ``synchronous=FULL``: what was committed survives a power cut, at one disk flush
a commit. ``?synchronous=normal`` in the URL flushes rarely: what was committed survives the death of every
process, and a power cut may take the last commits back, never a part of one. The driver's own transaction
handling is off; every transaction begins with the statement that ``begin_statement`` in
the connection's execution options names.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import psycopg2
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, StaticPool

from orchestrator.errors import ConfigurationError
from orchestrator.types import Micros

EXAMPLE: Final = 'for example "postgresql://localhost/shop" or "sqlite:///orchestrator.db"'
_MARGIN_MS: Final = 3_000
_LOCK_TIMEOUT_MS: Final = 5_000
_STATEMENT_TIMEOUT_MS: Final = 30_000
_CHECK_INTERVAL_MS: Final = 1_000
_BUSY_TIMEOUT_MS: Final = 1_000
SYNCHRONOUS: Final = "synchronous"
"""Parameter of an SQLite URL: when the file is flushed to disk."""
_IDLE_SECONDS: Final = 5.0
"""A pooled connection unused for longer is probed before use: the server may have been restarted."""

SETTINGS: Final = (
    "idle_in_transaction_session_timeout",
    "lock_timeout",
    "statement_timeout",
    "client_connection_check_interval",
)
"""The PostgreSQL settings that are given to each session."""

_SET: Final = "SELECT set_config(%s, %s, false)"


def parse_url(url: str) -> URL:
    """Reads a database URL and names our driver in it.

    Raises:
        ConfigurationError: It can't be read, or its database or driver is not supported.
    """
    try:
        parsed = make_url(url)
        if "\0" in str(url):
            raise ValueError
    except (ArgumentError, ValueError):
        raise ConfigurationError(f"orchestrator_database_url can't be read as a URL; give one, {EXAMPLE}") from None
    if parsed.drivername in {"postgres", "postgresql", "postgresql+psycopg2"}:
        # A bare postgresql:// means another driver from SQLAlchemy 2.1 on.
        return parsed.set(drivername="postgresql+psycopg2")
    if parsed.drivername in {"sqlite", "sqlite+pysqlite"}:
        return _parse_sqlite(parsed)
    raise ConfigurationError(
        f"orchestrator_database_url: {parsed.drivername}:// is not supported; use PostgreSQL (psycopg2) or SQLite, "
        f"{EXAMPLE}"
    )


def _parse_sqlite(url: URL) -> URL:
    if str(url.query.get(SYNCHRONOUS, "full")).lower() not in {"normal", "full", "extra"}:
        raise ConfigurationError(f"orchestrator_database_url: {SYNCHRONOUS} may be normal, full or extra")
    named = url.database is not None and url.database != ":memory:" and not url.database.startswith("file:")
    # The directory may change between now and the connections that are opened later.
    path = str(Path(url.database).absolute()) if url.database and named else url.database
    return url.set(drivername="sqlite+pysqlite", database=path)


def is_memory(url: URL) -> bool:
    """True for an SQLite database that lives in memory."""
    return url.get_backend_name() == "sqlite" and (
        url.database in {None, "", ":memory:"} or url.query.get("mode") == "memory"
    )


def postgresql_engine(url: URL, *, pool_size: int, decision_timeout_us: Micros, application_name: str) -> Engine:
    """Creates an engine for PostgreSQL; no connection is opened yet."""
    engine = create_engine(
        url,
        # Set, not assumed: a database or role may default to another level, and P1 needs a snapshot a statement.
        isolation_level="READ COMMITTED",
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_timeout=5,
        pool_use_lifo=True,
        connect_args={
            "application_name": application_name,
            "connect_timeout": 5,
            "keepalives": 1,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 15_000,
        }
        | dict(url.query),
    )
    idle = decision_timeout_us // 1000 + _MARGIN_MS
    values = dict(zip(SETTINGS, (idle, _LOCK_TIMEOUT_MS, _STATEMENT_TIMEOUT_MS, _CHECK_INTERVAL_MS), strict=True))

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _entry: ConnectionPoolEntry) -> None:
        _apply_settings(connection, values)

    _probe_idle_connections(engine)
    return engine


def _apply_settings(connection: Any, values: Mapping[str, int]) -> None:
    # Servers before version 14, and those on some systems, refuse client_connection_check_interval: `doctor`
    # tells, and the keepalives find a vanished client too, only later.
    required = {name: ms for name, ms in values.items() if name != SETTINGS[-1]}
    try:
        _set_all(connection, values)
    except psycopg2.DatabaseError:
        connection.rollback()
        _set_all(connection, required)


def _set_all(connection: Any, values: Mapping[str, int]) -> None:
    with connection.cursor() as cursor:
        # One round trip: connecting is what a short-lived process does most.
        cursor.execute(
            "; ".join([_SET] * len(values)), [part for name, ms in values.items() for part in (name, f"{ms}ms")]
        )
    connection.commit()


def _probe_idle_connections(engine: Engine) -> None:
    # Probing every checkout would cost a round trip a transaction; a busy pool notices a restart by its
    # first error, which empties it.
    @event.listens_for(engine, "checkin")
    def note(_connection: Any, entry: ConnectionPoolEntry) -> None:
        entry.info["idle_since"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def probe(connection: Any, entry: ConnectionPoolEntry, _proxy: PoolProxiedConnection) -> None:
        idle_since = entry.info.get("idle_since")
        if idle_since is None or time.monotonic() - idle_since < _IDLE_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except Exception as error:
            raise DisconnectionError from error


def session_settings(conn: Connection) -> dict[str, str]:
    """Returns the settings of :data:`SETTINGS` and the isolation level in force, as PostgreSQL shows them."""
    names = ", ".join(f"'{name}'" for name in (*SETTINGS, "transaction_isolation"))
    rows = conn.execute(text(f"SELECT name, current_setting(name) AS value FROM pg_settings WHERE name IN ({names})"))  # noqa: S608
    return {row.name: row.value for row in rows}


class SqliteConnection(sqlite3.Connection):
    """The driver's connection, made so that it can be known by a weak reference."""

    __slots__ = ("__weakref__",)


def sqlite_engine(url: URL, *, pool_size: int) -> Engine:
    """Creates an engine for an SQLite file, or for memory with one connection shared by all threads.

    Raises:
        ConfigurationError: The file's directory does not exist.
    """
    memory, plain = is_memory(url), url.difference_update_query([SYNCHRONOUS])
    level = str(url.query.get(SYNCHRONOUS, "full"))
    if not memory:
        _check_directory(url)
    arguments: dict[str, Any] = {
        "connect_args": {
            "check_same_thread": False,
            "timeout": _BUSY_TIMEOUT_MS / 1000,
            "factory": SqliteConnection,
        }
    }
    if memory:
        engine = create_engine(url.set(database=":memory:", query={}), poolclass=StaticPool, **arguments)
    else:
        engine = create_engine(plain, pool_size=pool_size, max_overflow=-1, **arguments)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        connection.execute("PRAGMA foreign_keys = ON")
        if not memory:
            _enter_wal(connection)
            connection.execute(f"PRAGMA synchronous = {level}")

    @event.listens_for(engine, "begin")
    def begin(conn: Connection) -> None:
        conn.exec_driver_sql(conn.get_execution_options().get("begin_statement", "BEGIN"))

    return engine


def _enter_wal(connection: sqlite3.Connection) -> None:
    # The switch needs the file for itself for a moment and does not wait for it as other statements do.
    deadline = time.monotonic() + 5.0
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _check_directory(url: URL) -> None:
    directory = Path(url.database or "").resolve().parent
    if not directory.is_dir():
        raise ConfigurationError(
            f"orchestrator_database_url: the directory {directory} of the SQLite file does not exist; create it"
        )
