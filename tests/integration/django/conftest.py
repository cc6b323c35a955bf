"""Django in the test's own process, its database being the one where workflows are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Celery
from sqlalchemy import make_url

from orchestrator import Orchestrator

django = pytest.importorskip("django")

from django.conf import settings  # noqa: E402 - after the check above
from django.db import connections  # noqa: E402

OTHER = "other"


def entry(url: str) -> dict[str, Any]:
    """An entry of DATABASES for a database's URL."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": parsed.database}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parsed.database,
        "USER": parsed.username or "",
        "PASSWORD": parsed.password or "",
        "HOST": parsed.host or "",
        "PORT": parsed.port or "",
    }


@pytest.fixture(scope="session")
def configured_django() -> None:
    """Django's settings, which a process can set once; without the variable by which Celery would notice it."""
    if not settings.configured:
        memory = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
        settings.configure(DATABASES={"default": dict(memory), OTHER: dict(memory)}, USE_TZ=True)
        django.setup()


def point_default_at(database: dict[str, Any]) -> None:
    """Lets Django's default alias mean another database from now on, in this thread."""
    connections.settings["default"].update(database)
    forget_default()


def forget_default() -> None:
    """Closes this thread's connection to the default database; the next use looks at the settings again."""
    connections["default"].close()
    del connections["default"]


@pytest.fixture
def django_database(configured_django: None, database_url: str) -> Iterator[str]:
    """The URL of Django's default database, with a table `orders`; once on PostgreSQL and once on SQLite."""
    before = connections.settings["default"].copy()
    point_default_at(entry(database_url))
    with connections["default"].cursor() as cursor:
        cursor.execute("CREATE TABLE orders (name VARCHAR(20))")
    yield database_url
    with connections["default"].cursor() as cursor:
        cursor.execute("DROP TABLE orders")
    point_default_at(before)


@pytest.fixture
def insert() -> Callable[..., None]:
    """Inserts an order in Django's present transaction."""

    def insert_order(name: str, using: str = "default") -> None:
        with connections[using].cursor() as cursor:
            cursor.execute("INSERT INTO orders VALUES (%s)", [name])

    return insert_order


@pytest.fixture
def orders() -> Callable[[], list[str]]:
    """The orders that are committed."""

    def read() -> list[str]:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT name FROM orders ORDER BY name")
            return [row[0] for row in cursor.fetchall()]

    return read


@pytest.fixture
def durable(django_database: str) -> Iterator[Orchestrator]:
    """The Orchestrator of an app on the same database as Django, without a worker."""
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.orchestrator_database_url = django_database
    made = Orchestrator(app)
    yield made
    made.close()
