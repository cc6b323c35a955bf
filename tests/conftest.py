"""Loads the shared fixtures and marks each test by the services it uses.

Fixtures come from tests/support/fixtures: databases, brokers, own_servers, processes. Plain pytest
needs no container engine; pytest-celery's `celery_worker` is a container, so tests use
`celery_worker_process`.
"""

import os

import pytest

from orchestrator.activity.context import note_worker_shutdown

pytest_plugins = (
    "tests.support.fixtures.brokers",
    "tests.support.fixtures.databases",
    "tests.support.fixtures.figures",
    "tests.support.fixtures.own_servers",
    "tests.support.fixtures.processes",
)

MARKS = {
    "postgresql": {"migrated_postgres_url", "empty_postgres_url", "make_postgres_database"},
    "rabbitmq": {"rabbitmq_url"},
    "redis": {"redis_url"},
    "private_server": {"own_postgres", "own_rabbitmq", "own_redis"},
}


@pytest.fixture(scope="session")
def worker_label() -> str:
    """Name of this process among those of the test run: main, or gw0, gw1, … under xdist."""
    return os.environ.get("PYTEST_XDIST_WORKER", "main")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lets `-m "not rabbitmq"` and the like work without marks written by hand."""
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        for mark, fixtures in MARKS.items():
            if used & fixtures:
                item.add_marker(mark)


@pytest.fixture(autouse=True)
def _no_worker_is_shutting_down() -> None:
    """A worker that an earlier test stopped in this process says nothing about this test."""
    note_worker_shutdown(stopping=False)
