"""A yard of real workers on servers that the test may stop, kill and damage."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from kombu import Connection

from orchestrator import Orchestrator
from orchestrator.client import WorkflowHandle
from tests.chaos.ledger import Ledger
from tests.support import schema
from tests.support.celery_worker import CeleryWorker
from tests.support.fixtures.processes import WorkerFactory

APP = "tests.chaos.chaos_app"
FULL = bool(os.environ.get("CHAOS_FULL"))
"""Production's own time-outs and the full size; else both are small."""
BRISK: dict[str, Any] = {
    "orchestrator_sweep_interval": 0.5,
    "orchestrator_liveness_interval": 1,
    "orchestrator_liveness_timeout": 6,
    "orchestrator_resend_after": 3,
}
"""Settings under which what takes half a minute takes seconds."""


@dataclass
class Yard:
    """One set of places and its client."""

    broker: str
    database: str
    ledger: Ledger
    conf: Mapping[str, Any]
    durable: Orchestrator
    _workers: WorkerFactory
    workers: list[CeleryWorker] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        """What a process of this yard needs in its environment."""
        return {
            "BROKER_URL": self.broker,
            "DATABASE_URL": self.database,
            "LEDGER_DIR": str(self.ledger.folder),
            "CHAOS_CONF": json.dumps(self.conf),
        }

    def worker(
        self,
        *,
        queues: Sequence[str] = (),
        concurrency: int = 2,
        app: str = APP,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> CeleryWorker:
        """Starts a worker and, unless told otherwise, waits until it is ready."""
        made = self._workers(app, queues=queues, concurrency=concurrency, env={**self.env, **(env or {})}, **options)
        self.workers.append(made)
        return made

    def start(self, name: str, *args: Any, id: str | None = None) -> WorkflowHandle[Any, Any]:
        """Starts a workflow by name."""
        return self.durable.start(name, *args, id=id or f"{name}-{secrets.token_hex(4)}", queue="celery")

    def depth(self, queue: str) -> int:
        """Messages that are ready in a queue; 0 when there is none of that name."""
        with Connection(self.broker) as connection:
            try:
                return int(connection.channel().queue_declare(queue=queue, passive=True).message_count)
            except connection.channel_errors:
                return 0


MakeYard = Callable[..., Yard]


@pytest.fixture
def make_yard(tmp_path: Path, celery_worker_process: WorkerFactory) -> Iterator[MakeYard]:
    """Makes a yard on a broker and a database: `make_yard(broker, database, **settings)`."""
    with ExitStack() as stack:

        def make(broker: str, database: str, **conf: Any) -> Yard:
            app = Celery("client", broker=broker, set_as_current=False)
            app.conf.update(conf, orchestrator_database_url=database)
            durable = Orchestrator(app)
            stack.callback(durable.close)
            folder = tmp_path / "ledger"
            (folder / "effects").mkdir(parents=True, exist_ok=True)
            settings = {**conf, "orchestrator_database_url": database}
            return Yard(broker, database, Ledger(folder), settings, durable, celery_worker_process)

        yield make


@pytest.fixture
def own_database(own_postgres: Any) -> Any:
    """A migrated PostgreSQL server of the test's own."""
    server = own_postgres()
    schema.migrate(server.url)
    return server


@pytest.fixture
def yard(make_yard: MakeYard, rabbitmq_url: str, postgres_url: str) -> Yard:
    """A yard on RabbitMQ and PostgreSQL that others use too: nothing of it may be stopped."""
    return make_yard(rabbitmq_url, postgres_url, **BRISK)
