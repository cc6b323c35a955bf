"""A shop whose workers are real processes, on a real broker and database; the test is its client."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from orchestrator import Orchestrator
from orchestrator.client import WorkflowHandle
from tests.support.celery_worker import CeleryWorker
from tests.support.fixtures.processes import WorkerFactory
from tests.support.waiting import wait_until

APP = "tests.integration.celery.shop_app"


@dataclass
class Shop:
    """One shop: its places, and its client."""

    broker: str
    database: str
    effects: Path
    durable: Orchestrator
    _workers: WorkerFactory

    def worker(
        self, *, pool: str = "prefork", concurrency: int = 2, queues: Sequence[str] = (), **options: Any
    ) -> CeleryWorker:
        """Starts a worker and waits until it is ready."""
        env = {"BROKER_URL": self.broker, "DATABASE_URL": self.database, "EFFECTS_DIR": str(self.effects)}
        env |= options.pop("env", {})
        return self._workers(APP, pool=pool, concurrency=concurrency, queues=queues, env=env, **options)

    def start(self, name: str, *args: Any) -> WorkflowHandle[Any, Any]:
        """Starts a workflow by name."""
        return self.durable.start(name, *args, id=f"{name}-{secrets.token_hex(4)}", queue="celery")

    def run(self, name: str, *args: Any, timeout: float = 40) -> Any:
        """Starts a workflow and returns its result."""
        return self.start(name, *args).result(timeout=timeout)

    def lines(self, name: str) -> list[str]:
        """Lines of an effect's file."""
        path = self.effects / name
        return path.read_text().splitlines() if path.exists() else []

    def wait_for_effect(self, name: str, count: int = 1, timeout: float = 20) -> list[str]:
        """Waits until an effect's file holds so many lines."""
        return wait_until(lambda: len(self.lines(name)) >= count and self.lines(name), timeout, message=name)  # type: ignore[return-value]


@pytest.fixture
def make_shop(
    tmp_path: Path, migrated_postgres_url: str, celery_worker_process: WorkerFactory
) -> Iterator[Callable[[str], Shop]]:
    """Makes a shop on PostgreSQL and the broker of a URL."""
    made: list[Orchestrator] = []

    def make(broker: str) -> Shop:
        app = Celery("client", broker=broker, set_as_current=False)
        app.conf.orchestrator_database_url = migrated_postgres_url
        durable = Orchestrator(app)
        made.append(durable)
        effects = tmp_path / "effects"
        effects.mkdir(exist_ok=True)
        return Shop(broker, migrated_postgres_url, effects, durable, celery_worker_process)

    yield make
    for durable in made:
        durable.close()


@pytest.fixture
def shop(make_shop: Callable[[str], Shop], rabbitmq_url: str) -> Shop:
    """A shop on PostgreSQL and RabbitMQ."""
    return make_shop(rabbitmq_url)


@pytest.fixture
def redis_shop(make_shop: Callable[[str], Shop], redis_url: str) -> Shop:
    """A shop on PostgreSQL and Redis."""
    return make_shop(redis_url)
