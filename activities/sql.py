"""Ready activities for SQL: one query, or one statement in a transaction of its own.

Databases are named and their URLs are read from the worker's environment, so that no password gets into a history:
``shop`` is the URL in ACTIVITIES_SQL_SHOP. Values go in as bound parameters (``:name``), never into the text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from orchestrator import ApplicationError, activity

_PATIENCE = timedelta(minutes=5)
# What the same statement will meet again; lost connections and locks are not among them.
_FOR_GOOD = (
    sa.exc.ProgrammingError,
    sa.exc.IntegrityError,
    sa.exc.DataError,
    sa.exc.NotSupportedError,
    sa.exc.StatementError,
)


@activity.defn(name="sql.query", start_to_close_timeout=_PATIENCE)
def query(
    database: str, statement: str, parameters: dict[str, Any] | None = None, *, limit: int = 1000
) -> list[dict[str, Any]]:
    """Run a query and return its rows as dictionaries of JSON values; dates, decimals and the like become text.

    Args:
        database: name of the database.
        statement: the query, with ``:name`` for its parameters.
        parameters: values by name.
        limit: rows at most.

    Raises:
        ApplicationError: ``SqlTooManyRows``, ``SqlRefused`` and ``SqlDatabaseUnknown``, for good;
            ``SqlUnavailable``, worth another try.
    """
    with _connection(database) as connection:
        rows = connection.execute(sa.text(statement), parameters or {}).mappings().fetchmany(limit + 1)
    if len(rows) > limit:
        message = f"the query gives more than {limit} rows; ask for fewer, or raise limit"
        raise ApplicationError(message, type="SqlTooManyRows", non_retryable=True)
    return [{str(column): _plain(value) for column, value in row.items()} for row in rows]


@activity.defn(name="sql.execute", start_to_close_timeout=_PATIENCE)
def execute(database: str, statement: str, parameters: dict[str, Any] | None = None) -> int:
    """Run one statement in a transaction of its own and return how many rows it touched.

    An activity runs at least once: write the statement so that running it again is harmless, for example with
    ``ON CONFLICT DO NOTHING`` and the parameter ``:idempotency_key``, which is always given.

    Args:
        database: name of the database.
        statement: the statement, with ``:name`` for its parameters.
        parameters: values by name.

    Raises:
        ApplicationError: ``SqlRefused`` and ``SqlDatabaseUnknown``, for good; ``SqlUnavailable``, worth another try.
    """
    values = dict(parameters or {})
    if activity.in_workflow():
        values.setdefault("idempotency_key", activity.info().idempotency_key)
    text = sa.text(statement)
    wanted = {
        name: value for name, value in values.items() if name != "idempotency_key" or name in text.compile().params
    }
    with _connection(database) as connection:
        return connection.execute(text, wanted).rowcount


@contextmanager
def _connection(database: str) -> Iterator[sa.Connection]:
    """Give a connection in a transaction; without a pool, so that forks and idle workers hold none."""
    engine = sa.create_engine(_url(database), poolclass=sa.NullPool)
    try:
        with engine.begin() as connection:
            yield connection
    except _FOR_GOOD as error:
        # StatementError is also the base of the errors that pass.
        passing = isinstance(error, (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.InternalError))
        raise ApplicationError(
            str(error), type="SqlUnavailable" if passing else "SqlRefused", non_retryable=not passing
        ) from error


def _url(database: str) -> str:
    variable = f"ACTIVITIES_SQL_{database.upper()}"
    url = os.environ.get(variable)
    if not re.fullmatch(r"[A-Za-z0-9_]+", database) or not url:
        message = f"no database is named {database!r}: set {variable} to its URL in the worker's environment"
        raise ApplicationError(message, type="SqlDatabaseUnknown", non_retryable=True)
    return re.sub(r"^postgresql://", "postgresql+psycopg2://", url)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
