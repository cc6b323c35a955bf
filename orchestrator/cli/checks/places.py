"""Places and names as people may see them: without passwords, and not too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celery import Celery

    from orchestrator.store.database import Database


def broker_url(app: Celery) -> str:
    """Returns the URL that an app publishes to, with its password hidden."""
    url = str(app.conf.broker_write_url or app.conf.broker_url or "")
    return url if url.startswith("memory:") else str(app.connection_for_write().as_uri())


def database_url(database: Database) -> str:
    """Returns the URL of a database, with its password hidden."""
    return database.engine.url.render_as_string(hide_password=True)


def listed(names: list[str], most: int = 5) -> str:
    """Returns the first few names, and how many there are beyond."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
