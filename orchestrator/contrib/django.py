"""Django: starts that wait for the commit of a transaction, and its database as ours.

``durable.start_on_commit`` comes here for the moment of the commit; it is imported at the first call, so nobody
else needs Django. ``database_url`` is for the project's settings and reads none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from orchestrator.errors import ConfigurationError

try:
    from django.db import transaction
except ImportError as error:  # pragma: no cover - tested in a process without Django
    raise ImportError(
        'Django can\'t be imported; install it with: pip install "celery-orchestrator[django]"', name=error.name
    ) from error

_POSTGRESQL = ("postgresql", "postgis")
_SQLITE = ("sqlite3", "spatialite")
_OF_DJANGO = frozenset(
    {"assume_role", "client_encoding", "isolation_level", "pool", "prepare_threshold", "server_side_binding"}
)
"""Options of Django's PostgreSQL back end, or of psycopg 3, that no connection string holds."""


def on_commit(call: Callable[[], None], *, using: str | None, robust: bool) -> None:
    """Calls after the commit of Django's present transaction, or at once outside of one.

    Args:
        call: Dropped when the transaction, or the savepoint around this call, is rolled back.
        using: Alias of the database whose transaction is meant; None is the default one.
        robust: True logs an error of the call; False lets it out of the ``atomic`` block, and later calls are not made.
    """
    transaction.on_commit(call, using=using, robust=robust)


def database_url(database: Mapping[str, Any]) -> str:
    """Returns a database of Django's as ``orchestrator_database_url`` wants it.

    In the project's settings::

        CELERY_ORCHESTRATOR_DATABASE_URL = database_url(DATABASES["default"])

    Args:
        database: One entry of ``DATABASES``.

    Raises:
        ConfigurationError: It is neither PostgreSQL nor SQLite, or has no name.
    """
    engine = str(database.get("ENGINE") or "")
    kind = engine.rpartition(".")[2]
    if kind in _SQLITE:
        return _sqlite_url(str(database.get("NAME") or ""))
    if kind in _POSTGRESQL:
        return _postgresql_url(database)
    raise ConfigurationError(
        f"Workflows are kept in PostgreSQL or SQLite, not in {engine or 'a database without ENGINE'!r}; give another "
        "entry of DATABASES, or write orchestrator_database_url out."
    )


def _sqlite_url(name: str) -> str:
    if not name:
        raise ConfigurationError(
            'The SQLite database has no NAME; give the path of its file, for example "db.sqlite3".'
        )
    return f"sqlite:///{_escaped(name)}"


def _postgresql_url(database: Mapping[str, Any]) -> str:
    name, user, password, host, port = (
        str(database.get(key) or "") for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")
    )
    options = {key: value for key, value in dict(database.get("OPTIONS") or {}).items() if key not in _OF_DJANGO}
    if not name and "service" not in options:
        raise ConfigurationError("The PostgreSQL database has no NAME; give one, or a service in its OPTIONS.")
    if host.startswith("/"):
        # The directory of a Unix socket has no place before the path of a URL.
        options["host"], host = host, ""
    elif ":" in host:
        host = f"[{host}]"
    secret = f":{quote(password, safe='')}" if password else ""
    credentials = f"{quote(user, safe='')}{secret}@" if user else ""
    query = f"?{urlencode(options)}" if options else ""
    return f"postgresql://{credentials}{host}{':' + port if port else ''}/{_escaped(name)}{query}"


def _escaped(name: str) -> str:
    # No more than has a meaning in a URL: older releases of SQLAlchemy leave other escapes in the name.
    return name.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
