"""The database of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from orchestrator.store.database import Connection, Database, check_connection


class EnvironmentDatabase(Database):
    """Takes what code under test writes "through its own connection" as if that were committed at once.

    The application's connection leads to another database, where the environment has no tables.
    """

    committed: Callable[[], object] | None = None
    """Called after such a transaction."""

    @contextmanager
    def transaction_of(self, conn: Any) -> Iterator[Connection]:
        check_connection(conn)
        with self.write() as ours:
            yield ours
        if self.committed is not None:
            self.committed()
