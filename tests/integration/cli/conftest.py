"""``celery -A app workflow …`` in processes of their own."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from celery import Celery

from orchestrator import Orchestrator
from tests.integration.cli import cli_flows  # noqa: F401 - this process starts and queries them
from tests.support.celery_worker import python_env
from tests.support.processes import ROOT
from tests.unit.cli.conftest import Shop

APP = "tests.integration.cli.cli_app"

# The entry point needs an installed distribution; this is what it does.
CELERY = """
import sys
from celery.bin.celery import celery, main
from orchestrator.cli import workflow
celery.add_command(workflow)
sys.argv[0] = "celery"
sys.exit(main())
"""


@dataclass
class CommandLine:
    """The command line of one app."""

    env: Mapping[str, str]
    app: str | None = APP

    def command(self, *args: str) -> list[str]:
        """Returns the command line of ``celery -A app workflow …``."""
        app = [] if self.app is None else ["-A", self.app]
        return [sys.executable, "-c", CELERY, *app, "workflow", *args]

    def run(self, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Runs it to its end."""
        done = subprocess.run(
            self.command(*args), cwd=ROOT, env=python_env(self.env), capture_output=True, text=True, timeout=90
        )
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done


@dataclass
class Place:
    """A broker, a database, and the command line on them: in this process, which is faster, or in its own."""

    env: Mapping[str, str]
    here: Shop
    own: CommandLine


def place(broker: str, database: str) -> Place:
    """Returns the place that an app of these settings works in."""
    app = Celery("here", broker=broker, set_as_current=False)
    app.conf.update(orchestrator_database_url=database, worker_cancel_long_running_tasks_on_connection_loss=True)
    env = {"BROKER_URL": broker, "DATABASE_URL": database}
    return Place(env, Shop(app, Orchestrator(app)), CommandLine(env))


@pytest.fixture
def on_servers(postgres_url: str, rabbitmq_url: str) -> Iterator[Place]:
    """PostgreSQL and RabbitMQ."""
    made = place(rabbitmq_url, postgres_url)
    yield made
    made.here.durable.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Place]:
    """SQLite and a broker in memory."""
    made = place("memory://", f"sqlite:///{tmp_path}/dev.db")
    yield made
    made.here.durable.close()
