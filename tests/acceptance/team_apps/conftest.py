"""A team's app on real services: its worker is a process, its client is here, both have the same settings."""

import json
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

APP = "tests.acceptance.team_apps.team_app"


@dataclass
class Team:
    """One team: its places, its settings and its client."""

    settings: dict[str, Any]
    env: dict[str, str]
    effects: Path
    durable: Orchestrator
    _workers: WorkerFactory

    def worker(self, *, pool: str = "prefork", queues: Sequence[str] = (), **options: Any) -> CeleryWorker:
        """Starts a worker with the team's settings."""
        env = {**self.env, **options.pop("env", {})}
        return self._workers(APP, pool=pool, queues=queues, env=env, **options)

    def start(self, id: str | None = None) -> WorkflowHandle[Any, Any]:
        """Starts the workflow of two activities, by name: this process does not know it."""
        queue = self.settings.get("task_default_queue", "celery")
        id = id or f"order-{secrets.token_hex(4)}"
        return self.durable.start("ta_fulfil", "order-42", 250, id=id, queue=queue)


@pytest.fixture
def make_team(
    tmp_path: Path, rabbitmq_url: str, postgres_url: str, celery_worker_process: WorkerFactory
) -> Iterator[Callable[..., Team]]:
    """Makes a team's app with these settings, on RabbitMQ and PostgreSQL."""
    made: list[Orchestrator] = []

    def make(**settings: Any) -> Team:
        env = {
            "TEAM_SETTINGS": json.dumps(settings),
            "BROKER_URL": rabbitmq_url,
            "DATABASE_URL": postgres_url,
            "EFFECTS_DIR": str(tmp_path),
            "C_FORCE_ROOT": "1",  # Celery's own fear of pickle, where tests run as root
        }
        client = {name: value for name, value in settings.items() if name != "audited"}
        app = Celery("team", broker=rabbitmq_url, set_as_current=False)
        app.conf.update(orchestrator_database_url=postgres_url, **client)
        made.append(Orchestrator(app))
        return Team(settings, env, tmp_path, made[-1], celery_worker_process)

    yield make
    for durable in made:
        durable.close()
