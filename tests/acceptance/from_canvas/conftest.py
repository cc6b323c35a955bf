"""The bookshop of docs/from-canvas.md: in this process with a broker in memory, and as processes of its own."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from celery import Celery, _state
from celery.contrib.testing.worker import start_worker

from orchestrator import Orchestrator, activity
from orchestrator.activity.definition import registry as activities
from orchestrator.activity.legacy import TaskReference
from orchestrator.runtime.registry import default_registry
from orchestrator.testing import WorkflowEnvironment
from tests.support.celery_worker import logging_left_alone

HERE = Path(__file__).parent
PROJECT = HERE / "project"
ROWS = sorted(path.stem for path in (PROJECT / "bookshop/rows").glob("[a-z]*.py"))


class Bookshop:
    """The bookshop's modules, loaded afresh, with an app on a broker in memory."""

    def __init__(self, database: Path) -> None:
        self.app: Celery = self.module("celery").app
        self.durable: Orchestrator = self.module("celery").durable
        self.app.conf.update(
            broker_url="memory://",
            broker_transport_options={"polling_interval": 0.005},
            result_backend="cache+memory://",
            orchestrator_database_url=f"sqlite:///{database}",
            orchestrator_sweep_interval=0.1,
        )
        self.outside = self.module("outside")
        self.orders = self.module("orders")
        self.rows = {name: self.module(f"rows.{name}") for name in ROWS}

    def module(self, name: str) -> ModuleType:
        """Returns one of its modules."""
        return importlib.import_module(f"bookshop.{name}")

    def activity_of(self, task: str) -> TaskReference[..., Any]:
        """Returns one of its tasks as an activity."""
        return activity.of(getattr(self.module("tasks"), task))

    @contextlib.contextmanager
    def worker(self, concurrency: int = 2) -> Iterator[Any]:
        """Runs a real worker of threads in this process."""
        worker = start_worker(self.app, pool="threads", concurrency=concurrency, perform_ping_check=False)
        with logging_left_alone(), worker as started:
            yield started

    def effects(self, kind: str) -> list[str]:
        """What was done of a kind since the test began."""
        return [line.partition(" ")[2] for line in self.outside.effects if line.partition(" ")[0] == kind]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bookshop]:
    """The bookshop; afterwards this process knows nothing of it."""
    sys.path.insert(0, str(PROJECT))
    before = _state.get_current_app(), _state.default_app
    with activities.scope(), default_registry().scope():
        shop = Bookshop(tmp_path_factory.mktemp("bookshop") / "bookshop.sqlite3")
        yield shop
        shop.durable.close()
        shop.app.close()
    _state._set_current_app(before[0])
    _state.set_default_app(before[1])
    sys.path.remove(str(PROJECT))
    for name in [name for name in sys.modules if name.partition(".")[0] == "bookshop"]:
        del sys.modules[name]


@pytest.fixture
def bookshop(loaded: Bookshop) -> Bookshop:
    """The bookshop with nothing done yet and no trouble ahead."""
    loaded.app.set_current()
    loaded.outside.effects.clear()
    loaded.outside.trouble.clear()
    return loaded


@pytest.fixture
def env(bookshop: Bookshop) -> Iterator[WorkflowEnvironment]:
    """A workflow environment that stands in for the bookshop's `durable`."""
    with WorkflowEnvironment(bookshop.app) as environment, environment.stand_in_for(bookshop.durable):
        yield environment


@pytest.fixture
def row(bookshop: Bookshop, request: pytest.FixtureRequest) -> Any:
    """The module of the row that the test's name begins with."""
    name = request.node.originalname.removeprefix("test_")
    return bookshop.rows[max((row for row in ROWS if name.startswith(row)), key=len)]
