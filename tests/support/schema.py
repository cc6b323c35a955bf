"""The database schema of the library, made by its own migrations."""

import importlib.util
import sqlite3
from contextlib import closing
from pathlib import Path


def migrate(url: str) -> None:
    """Bring the database at the URL to the newest schema, as `celery workflow migrate` does."""
    from orchestrator.store.migrate import upgrade

    upgrade(url)


def available() -> bool:
    """False while the library has no migrations yet."""
    try:
        return importlib.util.find_spec("orchestrator.store.migrate") is not None
    except ModuleNotFoundError:
        return False


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite database with whatever still is in its write-ahead log."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
