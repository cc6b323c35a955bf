"""pytest-celery's own fixtures over local services: its matrix of brokers, its worker nodes.

The plugin asks for a container engine only in the fixtures that are replaced here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from celery.contrib.testing.app import setup_default_app
from pytest_celery import CeleryTestBroker, CeleryTestSetup, CeleryTestWorker

from orchestrator import Orchestrator
from tests.acceptance.pytest_celery.local_nodes import LocalService, LocalWorker
from tests.support.fixtures.processes import WorkerFactory

FLOWS = "tests.acceptance.pytest_celery.flows"


BROKERS = [
    pytest.param("celery_rabbitmq_broker", marks=pytest.mark.rabbitmq),
    pytest.param("celery_redis_broker", marks=pytest.mark.redis),
]


@pytest.fixture(params=BROKERS)
def celery_broker(request: pytest.FixtureRequest) -> CeleryTestBroker:
    """The plugin's matrix of brokers, in an order of its own: the plugin's set has none, which xdist refuses."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def celery_setup_app(celery_setup_config: dict[str, Any], celery_setup_name: str) -> Iterator[Celery]:
    """The plugin's app, which is not the current app of the tests that follow."""
    app = Celery(celery_setup_name, set_as_current=False)
    app.config_from_object(celery_setup_config)
    with setup_default_app(app):
        yield app


@pytest.fixture
def celery_rabbitmq_broker(rabbitmq_url: str) -> CeleryTestBroker:
    """The plugin's RabbitMQ: a virtual host of the one that runs here."""
    return CeleryTestBroker(LocalService("rabbitmq", rabbitmq_url))


@pytest.fixture
def celery_redis_broker(redis_url: str) -> CeleryTestBroker:
    """The plugin's Redis: a database of the one that runs here."""
    return CeleryTestBroker(LocalService("redis", redis_url))


@pytest.fixture
def celery_backend_cluster() -> None:
    """No result back end: workflows need none."""


@pytest.fixture
def celery_setup_worker(
    celery_broker: CeleryTestBroker,
    celery_setup_app: Celery,
    postgres_url: str,
    celery_worker_process: WorkerFactory,
) -> CeleryTestWorker:
    """The plugin's worker node: a process."""
    env = {"BROKER_URL": celery_broker.config()["host_url"], "DATABASE_URL": postgres_url}
    return CeleryTestWorker(LocalWorker(celery_worker_process(FLOWS, env=env)), celery_setup_app)


@pytest.fixture
def durable(celery_setup: CeleryTestSetup, postgres_url: str) -> Iterator[Any]:
    """The client, on the app that the plugin made."""
    celery_setup.app.conf.orchestrator_database_url = postgres_url
    client = Orchestrator(celery_setup.app)
    yield client
    client.close()
