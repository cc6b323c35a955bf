"""Databases in memory, one for each test, made in a millisecond.

The first is created like any other and kept; those that follow are page-by-page copies of it. All share the
compiled form of the statements, which costs more than running them: half of a short test's time.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

from orchestrator.store import migrate
from orchestrator.store.database import Database
from orchestrator.types import Clock

D = TypeVar("D", bound=Database)

URL = "sqlite://"

_lock = threading.Lock()
_template: Database | None = None
_compiled: dict[Any, Any] = {}


def fresh_database(clock: Clock, kind: type[D]) -> D:
    """Returns an empty database in memory with the whole schema; ``dispose`` ends it.

    Args:
        clock: The database's clock.
        kind: Its class.
    """
    global _template  # noqa: PLW0603 - made once per process, never written to afterwards
    database = kind.open(URL, clock=clock)
    with _lock:
        if _template is None:
            _template = Database.open(URL)
            migrate.create(_template)
        with _template.engine.connect() as source, database.engine.connect() as target:
            source.connection.driver_connection.backup(target.connection.driver_connection)  # type: ignore[union-attr]
        # A compiled statement is found again by its dialect object.
        database.engine.dialect = _template.engine.dialect
    database.engine.update_execution_options(compiled_cache=_compiled)
    return database
