"""Databases on a PostgreSQL server: made for a test run, emptied between its tests, dropped at the end.

Migrating a database takes a second, emptying it a few milliseconds. So each process of a test run
(each xdist worker) migrates one database of its own, remembers the rows that the migration put there
(the seeds), and before each test puts the database back to exactly that.
"""

import contextlib
import getpass
import os
import secrets
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg2
from psycopg2 import sql

from tests.support import services

SEEDS = "test_seeds"  # the schema that remembers what the migration inserted

# Superusers may skip the foreign keys, so the order of the tables does not matter to them.
RESET = f"""
DO $$
DECLARE
    item record;
    superuser boolean := (SELECT usesuper FROM pg_user WHERE usename = current_user);
    tables text := (
        SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') FROM pg_tables
        WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    );
BEGIN
    IF tables IS NULL THEN
        RETURN;
    END IF;
    IF superuser THEN
        SET LOCAL session_replication_role = replica;
    ELSE
        EXECUTE 'TRUNCATE ' || tables || ' CASCADE';
    END IF;
    FOR item IN
        SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    LOOP
        IF superuser THEN
            EXECUTE format('DELETE FROM public.%I', item.tablename);
        END IF;
        IF to_regclass(format('{SEEDS}.%I', item.tablename)) IS NOT NULL THEN
            EXECUTE format(
                'INSERT INTO public.%1$I OVERRIDING SYSTEM VALUE SELECT * FROM {SEEDS}.%1$I', item.tablename
            );
        END IF;
    END LOOP;
END $$
"""

REMEMBER = f"""
CREATE SCHEMA {SEEDS};
DO $$
DECLARE
    item record;
    filled boolean;
BEGIN
    FOR item IN
        SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM public.%I)', item.tablename) INTO filled;
        IF filled THEN
            EXECUTE format('CREATE TABLE {SEEDS}.%1$I AS TABLE public.%1$I', item.tablename);
        END IF;
    END LOOP;
END $$
"""


def given() -> str | None:
    """The URL that the environment names; then no other server is tried."""
    return os.environ.get(services.POSTGRES_URL)


def default_urls() -> list[str]:
    """Where PostgreSQL is: the URL in the environment, or the usual local ones."""
    if url := given():
        return [url]
    users = dict.fromkeys(["postgres", getpass.getuser(), "postgres:postgres"])
    return [f"postgresql://{user}@127.0.0.1:5432/postgres" for user in users]


def why_unusable(url: str) -> str | None:
    """The reason why databases can't be created there; None when they can."""
    try:
        with admin_cursor(url, connect_timeout=3) as cursor:
            cursor.execute("SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user")
            row = cursor.fetchone()
    except psycopg2.OperationalError as error:
        return str(error).strip()
    return None if row and row[0] else f"the user of {url} may not create databases"


@contextlib.contextmanager
def admin_cursor(url: str, **options: Any) -> Iterator[Any]:
    """A cursor in autocommit mode, which CREATE and DROP DATABASE need."""
    connection = psycopg2.connect(url, **options)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()


def create(server_url: str, label: str) -> str:
    """Create an empty database named after the test run and return its URL."""
    name = f"test_{int(time.time())}_{label}_{secrets.token_hex(4)}"
    with admin_cursor(server_url) as cursor:
        cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return urlunsplit(urlsplit(server_url)._replace(path="/" + quote(name)))


def drop(server_url: str, url: str) -> None:
    """Drop a database and disconnect whoever is still there."""
    name = urlsplit(url).path.lstrip("/")
    with admin_cursor(server_url) as cursor:
        cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def drop_stale(server_url: str) -> None:
    """Drop what killed test runs left behind hours ago."""
    with admin_cursor(server_url) as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE datname LIKE 'test\\_%'")
        names = [row[0] for row in cursor.fetchall() if services.stale(row[0], time.time())]
        for name in names:
            with contextlib.suppress(psycopg2.Error):  # another test run was faster
                cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def remember_seeds(url: str) -> None:
    """Take the present rows of all tables as what `reset` puts back."""
    with admin_cursor(url) as cursor:
        cursor.execute(REMEMBER)


def reset(url: str) -> None:
    """Put all tables back to their seeds, ending first what an earlier test left running.

    Idle connections stay: a pool that outlives the test may go on using them.
    """
    with admin_cursor(url) as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend' AND state <> 'idle'"
        )
        cursor.execute("SET lock_timeout = '10s'")
        cursor.execute(RESET)
