"""A workflow starts with the commit of Django's transaction, and only then."""

import asyncio
import logging
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator import (
    InvalidArgument,
    Orchestrator,
    PayloadError,
    SignalReceipt,
    Unavailable,
    WorkflowAlreadyStarted,
    WorkflowHandle,
    WorkflowNotFound,
    workflow,
)
from orchestrator.errors import InsideWorkflow
from orchestrator.testing import WorkflowEnvironment
from tests.integration.django.conftest import OTHER, forget_default

pytest.importorskip("django")

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import transaction

Insert = Callable[..., None]
Orders = Callable[[], list[str]]


class Rollback(Exception):
    pass


@workflow.defn(name="django_fulfil", queue="orders", signals={"packed": str})
async def fulfil(order: str, cents: int = 0) -> str:
    return f"{order} packed by {await workflow.wait_for_signal('packed', str)}"


@workflow.defn(name="django_approval")
class Approval:
    @workflow.run
    async def run(self, amount: int) -> str:
        return str(amount)


@pytest.fixture
def ready(durable: Orchestrator) -> Callable[[], int]:
    """How many messages wait for a worker: in a broker in memory, which this process keeps from test to test."""
    transport = durable.engine().transport
    before = transport.depth("orders") or 0
    return lambda: (transport.depth("orders") or 0) - before


def test_it_starts_with_the_commit_and_not_before(
    durable: Orchestrator, insert: Insert, orders: Orders, ready: Callable[[], int]
):
    with transaction.atomic():
        insert("42")
        handle = durable.start_on_commit(fulfil, "42", 999, id="order-42")
        assert (handle.id, handle.run_id, handle.created) == ("order-42", None, None)
        assert durable.list().items == []
        with pytest.raises(WorkflowNotFound):
            handle.describe()
        assert ready() == 0

    described = handle.describe()
    assert (described.id, described.type, described.queue) == ("order-42", "django_fulfil", "orders")
    assert (handle.run_id, handle.created) == (described.run_id, True)
    assert orders() == ["42"]
    assert ready() == 1


def test_rolled_back_it_never_starts(durable: Orchestrator, insert: Insert, orders: Orders, ready: Callable[[], int]):
    def place() -> None:
        with transaction.atomic():
            insert("42")
            handles.append(durable.start_on_commit(fulfil, "42", id="order-42"))
            raise Rollback

    handles: list[Any] = []
    with pytest.raises(Rollback):
        place()
    with transaction.atomic():
        insert("43")
    assert durable.list().items == []
    assert orders() == ["43"]
    assert ready() == 0
    assert handles[0].run_id is None
    with pytest.raises(WorkflowNotFound):
        handles[0].describe()


def test_a_savepoint_that_is_rolled_back_takes_its_start_along(durable: Orchestrator, insert: Insert):
    def try_another() -> None:
        with transaction.atomic():
            durable.start_on_commit(fulfil, "inner", id="inner")
            raise Rollback

    with transaction.atomic():
        durable.start_on_commit(fulfil, "outer", id="outer")
        with pytest.raises(Rollback):
            try_another()
        with transaction.atomic():
            durable.start_on_commit(fulfil, "kept", id="kept")
    assert {run.id for run in durable.list().items} == {"outer", "kept"}


def test_outside_a_transaction_it_starts_at_once(durable: Orchestrator):
    handle = durable.start_on_commit(fulfil, "42", id="order-42")
    assert handle.created
    assert handle.run_id == handle.describe().run_id


def test_without_an_id_each_gets_one_of_its_own_at_the_call(durable: Orchestrator):
    with transaction.atomic():
        handles = [durable.start_on_commit(fulfil, "42") for _ in range(2)]
        ids = [handle.id for handle in handles]
    assert len(set(ids)) == 2
    assert [durable.get_handle(id).describe().id for id in ids] == ids


def test_a_class_and_a_name_start_as_well(durable: Orchestrator):
    with transaction.atomic():
        durable.start_on_commit(Approval.run, 500, id="class")
        durable.start_on_commit("django_fulfil", "42", id="name")
        durable.start_on_commit("known_elsewhere", "42", id="elsewhere", queue="far", memo={"by": "ann"})
    assert {(run.id, run.type) for run in durable.list().items} == {
        ("class", "django_approval"),
        ("name", "django_fulfil"),
        ("elsewhere", "known_elsewhere"),
    }
    assert durable.get_handle("elsewhere").describe().queue == "far"


@pytest.mark.parametrize(
    ("args", "options", "error"),
    [
        ((fulfil,), {}, InvalidArgument),
        ((fulfil, "42", 1, 2), {}, InvalidArgument),
        ((fulfil, "42", "many"), {}, PayloadError),
        ((fulfil, "x" * 3_000_000), {}, PayloadError),
        ((fulfil, "42"), {"id": " "}, InvalidArgument),
        ((fulfil, "42"), {"queue": ""}, InvalidArgument),
        ((fulfil, "42"), {"id_reuse_policy": "sometimes"}, InvalidArgument),
        ((fulfil, "42"), {"request_id": ""}, InvalidArgument),
        ((fulfil, "42"), {"memo": object()}, PayloadError),
        (("no_such_type", "42"), {}, InvalidArgument),
        ((print, "42"), {}, InvalidArgument),
    ],
)
def test_what_is_wrong_is_refused_at_the_call(durable: Orchestrator, args: Any, options: Any, error: type[Exception]):
    with transaction.atomic(), pytest.raises(error):
        durable.start_on_commit(*args, **options)
    assert durable.list().items == []


def test_two_starts_with_one_id_are_one_run(durable: Orchestrator):
    with transaction.atomic():
        first = durable.start_on_commit(fulfil, "42", id="order-42")
        second = durable.start_on_commit(fulfil, "42", id="order-42")
    assert (first.created, second.created) == (True, False)
    assert first.run_id == second.run_id


@pytest.fixture
def taken(durable: Orchestrator) -> Iterator[None]:
    """An id that is taken by a run with another input."""
    durable.start(fulfil, "other", id="order-42")
    return


def test_an_id_that_is_taken_is_told_at_the_commit(durable: Orchestrator, taken: None, insert: Insert, orders: Orders):
    def place() -> None:
        with transaction.atomic():
            insert("42")
            durable.start_on_commit(fulfil, "42", id="order-42")
            durable.start_on_commit(fulfil, "later", id="later")

    with pytest.raises(WorkflowAlreadyStarted) as caught:
        place()
    assert caught.value.__notes__ == [
        "The transaction is committed, but workflow 'order-42' was not started.",
    ]
    assert orders() == ["42"]
    assert {run.id for run in durable.list().items} == {"order-42"}  # as Django's on_commit does it


def test_a_robust_start_that_fails_is_logged_and_later_ones_are_made(
    durable: Orchestrator, taken: None, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.ERROR, logger="django.db.backends.base"), transaction.atomic():
        refused = durable.start_on_commit(fulfil, "42", id="order-42", robust=True)
        durable.start_on_commit(fulfil, "later", id="later")
    assert "WorkflowAlreadyStarted" in caplog.text
    assert refused.run_id is None
    assert {run.id for run in durable.list().items} == {"order-42", "later"}


def test_a_database_that_is_gone_at_the_commit_is_told_with_what_was_not_started(
    durable: Orchestrator, monkeypatch: pytest.MonkeyPatch
):
    def gone(*_: Any) -> None:
        raise Unavailable("start: the database could not be reached for 5 s")

    monkeypatch.setattr("orchestrator.engine.runs.start", gone)

    def place() -> None:
        with transaction.atomic():
            durable.start_on_commit(fulfil, "42", id="order-42")

    with pytest.raises(Unavailable) as caught:
        place()
    assert "'order-42' was not started" in caught.value.__notes__[0]


def test_it_follows_the_transaction_of_the_alias(durable: Orchestrator):
    def place() -> None:
        with transaction.atomic(using=OTHER):
            with transaction.atomic():
                durable.start_on_commit(fulfil, "default", id="default")
                durable.start_on_commit(fulfil, "other", id="other", using=OTHER)
            assert {run.id for run in durable.list().items} == {"default"}
            raise Rollback

    with pytest.raises(Rollback):
        place()
    assert {run.id for run in durable.list().items} == {"default"}
    with transaction.atomic(using=OTHER):
        durable.start_on_commit(fulfil, "other", id="other", using=OTHER)
    assert {run.id for run in durable.list().items} == {"default", "other"}


def test_a_signal_on_commit_reaches_what_was_started_before_it(durable: Orchestrator):
    receipts: list[SignalReceipt] = []
    with transaction.atomic():
        handle = durable.start_on_commit(fulfil, "42", id="order-42")
        transaction.on_commit(lambda: receipts.append(handle.signal("packed", "ann")))
    assert [(receipt.stored, receipt.run_id) for receipt in receipts] == [(True, handle.run_id)]


def test_its_first_use_may_be_within_a_transaction_that_has_written(durable: Orchestrator, insert: Insert):
    # The engine is made, and on SQLite connects, while Django holds the file's write lock.
    forget_default()
    durable.close()
    with transaction.atomic():
        insert("42")
        handle = durable.start_on_commit(fulfil, "42", id="order-42")
    assert handle.created


def test_in_a_test_kit_it_runs_there(durable: Orchestrator):
    with WorkflowEnvironment() as env, env.stand_in_for(durable):
        with transaction.atomic():
            handle = durable.start_on_commit(fulfil, "42", id="order-42")
        handle.signal("packed", "ann")
        assert handle.result() == "42 packed by ann"


def test_workflow_code_may_not_call_it(durable: Orchestrator):
    @workflow.defn(name=f"django_inside_{secrets.token_hex(4)}")
    async def inside() -> str:
        try:
            durable.start_on_commit(fulfil, "42")
        except InsideWorkflow as error:
            return str(error)
        return "no error"

    with WorkflowEnvironment() as env:
        assert "durable.start_on_commit" in env.run(inside)


def test_without_django_the_error_names_the_extra():
    code = """
import sys
sys.modules["django"] = None
from celery import Celery
from orchestrator import Orchestrator, workflow

@workflow.defn
async def fulfil(order: str) -> None: ...

app = Celery("shop", broker="memory://")
app.conf.orchestrator_database_url = "sqlite://"
try:
    Orchestrator(app).start_on_commit(fulfil, "42")
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert 'pip install "celery-orchestrator[django]"' in done.stdout


def test_importing_the_library_does_not_ask_for_django():
    # Kombu looks for a part of it by itself.
    code = "import orchestrator.app, sys; print(sorted({'orchestrator.contrib', 'django.db'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_async_code_calls_it_where_it_has_its_transaction(durable: Orchestrator):
    def place() -> WorkflowHandle[None, str]:
        try:
            with transaction.atomic():
                handle = durable.start_on_commit(fulfil, "42", id="order-42")
                assert handle.run_id is None
            return handle
        finally:
            forget_default()  # that of this thread

    async def view() -> str | None:
        with pytest.raises(SynchronousOnlyOperation):
            durable.start_on_commit(fulfil, "43", id="order-43")
        return (await sync_to_async(place)()).run_id

    assert asyncio.run(view()) == durable.get_handle("order-42").describe().run_id
    assert [run.id for run in durable.list().items] == ["order-42"]
