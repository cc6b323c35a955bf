"""What can go wrong with a transaction, and how the database's errors are told apart.

::

    OrchestratorError
    ├── TryAgain                      the transaction was rolled back for sure; do it again
    │   ├── GateBusy                  the lineage's gate is held by senders (or by another closing decision)
    │   ├── DecisionOutdated          somebody else committed to the run since it was read
    │   └── Interrupted               deadlock, time-out, lost connection: before the commit (also Unavailable)
    └── Unavailable
        └── CommitUnknown             the answer to a commit was lost: it may have happened or not

An error that is none of these (a broken constraint, wrong SQL) is a bug and passes unchanged, except a
missing table or column, which is a schema that nobody migrated.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from orchestrator.errors import OrchestratorError, SchemaOutdated, Unavailable

MIGRATE = "run: celery -A <your app> workflow migrate"
"""What to do about a schema that is missing or behind."""


class TryAgain(OrchestratorError):
    """The transaction was rolled back and is worth doing again from its beginning."""


class GateBusy(TryAgain):
    """The gate of the lineage was not free within its time-out; roll back and decide again."""


class DecisionOutdated(TryAgain):
    """The run was changed by another decision since this one read it; decide again."""


class Interrupted(TryAgain, Unavailable):
    """The database broke the transaction off before its commit."""


class CommitUnknown(Unavailable):
    """The connection was lost during a commit: look up whether it happened before doing it again."""


class Fault(Enum):
    """Kinds of database errors."""

    RETRY = "retry"
    """The transaction was rolled back; the same one may succeed now."""
    LOST = "lost"
    """The connection is gone; a commit under way may have happened."""
    SCHEMA = "schema"
    """A table or column does not exist."""
    BUG = "bug"
    """Anything else."""


_RETRY_STATES = frozenset({
    "40001",  # serialization_failure
    "40P01",  # deadlock_detected
    "25P02",  # in_failed_sql_transaction: one of these came before, and somebody went on
    "55P03",  # lock_not_available: our lock_timeout
    "57014",  # query_canceled: our statement_timeout
    "53000",  # insufficient_resources
    "53100",  # disk_full
    "53200",  # out_of_memory
})  # fmt: skip
_LOST_STATES = frozenset({
    "57P01",  # admin_shutdown, also pg_terminate_backend
    "57P02",  # crash_shutdown
    "57P03",  # cannot_connect_now
    "57P05",  # idle_session_timeout
    "25P03",  # idle_in_transaction_session_timeout
    "25P04",  # transaction_timeout
    "53300",  # too_many_connections
})  # fmt: skip
_SCHEMA_STATES = frozenset({"42P01", "42703", "3F000"})  # undefined table, column, schema

_SQLITE_RETRY = frozenset({
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PROTOCOL,  # too many processes opening the write-ahead log at once
})  # fmt: skip


def classify(error: DBAPIError) -> Fault:
    """Tells what kind of failure a database error is."""
    if isinstance(error.orig, sqlite3.Error):
        return _classify_sqlite(error.orig)
    state = getattr(error.orig, "pgcode", None)
    if error.connection_invalidated or state in _LOST_STATES or (state or "").startswith("08"):
        return Fault.LOST
    if state is None and type(error.orig).__name__ in {"OperationalError", "InterfaceError"}:
        # libpq gives no code when there is no server to give one: refused, unreachable, cut off.
        return Fault.LOST
    if state in _RETRY_STATES:
        return Fault.RETRY
    return Fault.SCHEMA if state in _SCHEMA_STATES else Fault.BUG


def _classify_sqlite(error: sqlite3.Error) -> Fault:
    code = getattr(error, "sqlite_errorcode", None)
    # Extended codes such as BUSY_SNAPSHOT carry the primary code in their lowest byte.
    if code is not None and code & 0xFF in _SQLITE_RETRY:
        return Fault.RETRY
    message = str(error)
    return Fault.SCHEMA if message.startswith("no such table") or "no such column" in message else Fault.BUG


@contextmanager
def translated(*, committing: bool = False) -> Iterator[None]:
    """Turns the database's errors into ours; also usable as a decorator.

    Args:
        committing: The block is the commit itself, so a lost connection leaves its outcome unknown.

    Raises:
        Interrupted: The transaction was rolled back.
        CommitUnknown: The connection was lost while committing.
        SchemaOutdated: A table or column is missing.
    """
    try:
        yield
    except PoolTimeout as error:
        raise Interrupted(f"No database connection was free in time; raise orchestrator_pool_size ({error})") from error
    except PendingRollbackError as error:
        raise Interrupted("The connection was lost earlier in this transaction") from error
    except DBAPIError as error:
        raise _translation(error, committing) from error


def _translation(error: DBAPIError, committing: bool) -> Exception:
    fault, line = classify(error), first_line(error)
    if fault is Fault.LOST and committing:
        return CommitUnknown(f"The connection was lost during a commit, so it is not known whether it happened: {line}")
    if fault in (Fault.LOST, Fault.RETRY):
        return Interrupted(f"The database broke off a transaction: {line}")
    if fault is Fault.SCHEMA:
        return SchemaOutdated(f"The database lacks something this version needs ({line}); {MIGRATE}")
    return error


def first_line(error: DBAPIError) -> str:
    """Returns the database's own message, without SQL and parameters."""
    return str(error.orig).strip().partition("\n")[0] or type(error.orig).__name__
