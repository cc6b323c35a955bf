"""The command line on an app of its own: SQLite, a broker in memory, and decisions made by hand."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from celery import Celery
from celery.bin.base import CLIContext
from click.testing import CliRunner, Result

from orchestrator import Orchestrator
from orchestrator.cli import workflow
from orchestrator.engine.decision import decide
from orchestrator.store import runs
from tests.unit.client import flows  # noqa: F401 - defines the workflows that the tests start


@dataclass
class Shop:
    """An app with workflows, and the commands run on it."""

    app: Celery
    durable: Orchestrator

    def invoke(self, *args: str, color: bool = False) -> Result:
        """Runs ``celery -A shop workflow …``."""
        context = CLIContext(app=self.app, no_color=not color, workdir=None)
        return CliRunner().invoke(workflow, args, obj=context, prog_name="celery workflow")

    def json(self, *args: str, code: int = 0) -> Any:
        """Runs a command with ``--json`` and returns what it printed."""
        result = self.invoke(*args, "--json")
        assert result.exit_code == code, (result.output, result.exception)
        return json.loads(result.stdout)

    def text(self, *args: str, code: int = 0) -> str:
        """Runs a command and returns what it printed for people."""
        result = self.invoke(*args)
        assert result.exit_code == code, (result.output, result.exception)
        return result.stdout

    def error(self, *args: str, code: int = 1) -> str:
        """Runs a command that ends with that code and returns what it said on standard error."""
        result = self.invoke(*args)
        assert result.exit_code == code, (result.output, result.exception)
        assert "Traceback" not in result.output
        return result.stderr

    def decide(self) -> None:
        """Decides every open run once."""
        engine = self.durable.engine()
        for status in ("PENDING", "RUNNING"):
            for item in self.durable.list(status=status).items:
                decide(engine, item.run_id)

    def run_of(self, workflow_id: str) -> Any:
        """Returns a run's row."""
        engine = self.durable.engine()
        with engine.db.read() as conn:
            return runs.find_latest(conn, "default", workflow_id)


@pytest.fixture
def make_shop() -> Iterator[Callable[..., Shop]]:
    """A factory of apps, each with settings of its own."""
    made: list[Shop] = []

    def make(database_url: str | None, broker: str = "memory://", **settings: Any) -> Shop:
        app = Celery("shop", broker=broker, set_as_current=False)
        if database_url is not None:
            app.conf.orchestrator_database_url = database_url
        app.conf.update(settings)
        made.append(Shop(app, Orchestrator(app)))
        return made[-1]

    yield make
    for shop in made:
        shop.durable.close()


@pytest.fixture
def shop(make_shop: Callable[..., Shop], sqlite_url: str) -> Shop:
    """An app on an SQLite file."""
    return make_shop(sqlite_url)
