"""The second and the thirtieth day of docs/from-canvas.md: real workers, killed in the middle of their work."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from celery import Celery

from orchestrator import ActivityError, Orchestrator, WorkerLost, WorkflowFailed
from orchestrator.transport.celery import CeleryTransport
from tests.acceptance.from_canvas.conftest import HERE, PROJECT
from tests.support.celery_worker import CeleryWorker
from tests.support.fixtures.processes import ProcessFactory, WorkerFactory
from tests.support.processes import ROOT
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PLACE = """
import sys, bookshop_here
from bookshop import orders
for name in sys.argv[2:]:
    getattr(orders, sys.argv[1])(name, 999)
"""


@dataclass
class Bookshop:
    """The bookshop as processes: the code of a day, a worker, and what was done outside."""

    folder: Path
    env: dict[str, str]
    durable: Orchestrator
    workers: WorkerFactory
    processes: ProcessFactory

    def deploy(self, *days: str) -> None:
        """Puts the code of a day in place, over that of the days before it."""
        for day in days:
            shutil.copytree(HERE / day, self.folder, dirs_exist_ok=True)

    def worker(self) -> CeleryWorker:
        """Starts a worker and waits until it is ready."""
        return self.workers("bookshop_here:app", concurrency=2, env=self.env)

    def place(self, how: str, *order_ids: str) -> None:
        """Places orders from a process of its own."""
        process = self.processes([sys.executable, "-c", PLACE, how, *order_ids], env=self.env)
        assert process.wait(40) == 0, process.logs()

    def hold(self, kind: str) -> None:
        """Lets all calls of a kind take long, until `go_on`."""
        (self.effects / f"hold.{kind}").touch()

    def go_on(self, kind: str) -> None:
        """Lets them end."""
        (self.effects / f"hold.{kind}").unlink()

    def done(self, kind: str) -> list[str]:
        """What was begun of a kind, in order."""
        path = self.effects / kind
        return path.read_text().splitlines() if path.exists() else []

    def waiting(self) -> int:
        """How many messages wait in the queue."""
        transport = self.durable.engine().transport
        assert isinstance(transport, CeleryTransport)
        return transport.depth("celery") or 0

    @property
    def effects(self) -> Path:
        return Path(self.env["EFFECTS_DIR"])


@pytest.fixture
def bookshop(
    tmp_path: Path,
    postgres_url: str,
    rabbitmq_url: str,
    celery_worker_process: WorkerFactory,
    start_process: ProcessFactory,
) -> Iterator[Bookshop]:
    """The bookshop of the first day, on PostgreSQL and RabbitMQ."""
    folder, effects = tmp_path / "bookshop", tmp_path / "effects"
    shutil.copytree(PROJECT, folder)
    effects.mkdir()
    env = {
        "BROKER_URL": rabbitmq_url,
        "DATABASE_URL": postgres_url,
        "EFFECTS_DIR": str(effects),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    app = Celery("client", broker=rabbitmq_url, set_as_current=False)
    app.conf.orchestrator_database_url = postgres_url
    durable = Orchestrator(app)
    yield Bookshop(folder, env, durable, celery_worker_process, start_process)
    durable.close()


def kill_while(bookshop: Bookshop, kind: str, how: str, order_id: str) -> None:
    """Places an order and kills the worker, with all its processes, while it does a step of it."""
    bookshop.hold(kind)
    worker = bookshop.worker()
    bookshop.place(how, order_id)
    wait_until(lambda: any(order_id in line for line in bookshop.done(kind)), 30, message=worker.logs)
    worker.kill()
    bookshop.go_on(kind)


def test_the_second_day_a_killed_worker_takes_a_chain_along(bookshop: Bookshop):
    kill_while(bookshop, "ship", "place_before", "41")
    assert bookshop.waiting() == 0  # nothing is left that anybody could go on with
    bookshop.worker()
    bookshop.place("place", "42")
    bookshop.durable.get_handle("order-42").result(timeout=40)
    assert bookshop.done("ship") == ["receipt-reservation-41", "receipt-reservation-42"]


def test_the_second_day_a_workflow_of_the_first_says_what_was_lost(bookshop: Bookshop):
    kill_while(bookshop, "ship", "place", "42")
    bookshop.worker()
    handle = bookshop.durable.get_handle("order-42")
    wait_until(lambda: not handle.describe().is_open, 40)
    with pytest.raises(WorkflowFailed, match=r"bookshop\.tasks\.ship") as failed:
        handle.result(timeout=1)
    assert isinstance(failed.value.cause, ActivityError)
    assert isinstance(failed.value.cause.cause, WorkerLost)
    assert bookshop.done("ship") == ["receipt-reservation-42"]
    assert [run.id for run in bookshop.durable.list(status="FAILED").items] == ["order-42"]


def test_the_second_day_a_workflow_goes_on_with_what_may_be_repeated(bookshop: Bookshop):
    bookshop.deploy("second_day")
    kill_while(bookshop, "ship", "place", "42")
    bookshop.worker()
    assert bookshop.durable.get_handle("order-42").result(timeout=40) == "parcel for receipt-reservation-42"
    assert bookshop.done("charge") == ["reservation-42"]
    assert bookshop.done("ship") == ["receipt-reservation-42"] * 2


def test_the_thirtieth_day_code_goes_on_with_the_orders_of_the_days_before(bookshop: Bookshop):
    bookshop.deploy("second_day")
    kill_while(bookshop, "ship", "place", "42")
    bookshop.deploy("thirtieth_day")
    bookshop.worker()
    bookshop.place("place", "43")
    bookshop.place("place_before", "44")  # an activity is a task, so chains go on working with it
    for order_id in ("42", "43"):
        result = bookshop.durable.get_handle(f"order-{order_id}").result(timeout=40)
        assert result == f"parcel for receipt-reservation-{order_id}"
    wait_until(lambda: "receipt-reservation-44" in bookshop.done("ship"), 30)
    assert sorted(bookshop.done("charge")) == ["reservation-42", "reservation-43", "reservation-44"]
