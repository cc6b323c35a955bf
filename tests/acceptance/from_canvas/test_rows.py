"""Each row of docs/from-canvas.md: the canvas code on a real worker, the workflow code beside it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery.beat import Scheduler
from celery.exceptions import TimeoutError as CeleryTimeout
from celery.worker.request import Request

from orchestrator import ActivityError, WorkerLost, WorkflowCanceled, WorkflowFailed
from orchestrator.testing import WorkflowEnvironment
from tests.acceptance.from_canvas.conftest import Bookshop
from tests.support.waiting import wait_until

PARCEL = "parcel for receipt-reservation-42"
QUOTES = [500, 600, 500]
DAY = datetime.now(UTC).date().isoformat()


# --- chain: the first day ---------------------------------------------------------------------------


def test_chain(bookshop: Bookshop):
    with bookshop.worker():
        assert bookshop.orders.place_before("42", 999).get(timeout=20) == PARCEL
        assert bookshop.outside.effects == ["reserve 42", "charge reservation-42", "ship receipt-reservation-42"]


def test_chain_as_a_workflow(bookshop: Bookshop, env: WorkflowEnvironment):
    handle = bookshop.orders.place("42", 999)
    assert handle.result() == PARCEL
    assert bookshop.outside.effects == ["reserve 42", "charge reservation-42", "ship receipt-reservation-42"]
    assert bookshop.orders.place("42", 999).run_id == handle.run_id


def test_chain_as_a_workflow_is_told_of_a_lost_step(bookshop: Bookshop, env: WorkflowEnvironment):
    env.stub(bookshop.activity_of("charge"), side_effect=[WorkerLost, "receipt"])
    with pytest.raises(WorkflowFailed) as failed:
        bookshop.orders.place("42", 999).result()
    assert isinstance(failed.value.cause, ActivityError)
    assert isinstance(failed.value.cause.cause, WorkerLost)
    assert bookshop.effects("ship") == []


# --- group and chord --------------------------------------------------------------------------------


def test_group(bookshop: Bookshop, row: Any):
    with bookshop.worker():
        assert row.ask_all("books").get(timeout=20) == QUOTES


def test_group_as_a_workflow(bookshop: Bookshop, row: Any, env: WorkflowEnvironment):
    assert env.run(row.quotes, "books") == QUOTES
    assert sorted(bookshop.effects("quote")) == ["drone books", "pigeon books", "snail books"]


def test_chord(bookshop: Bookshop, row: Any):
    with bookshop.worker():
        assert row.send_cheaply("books").get(timeout=20) == "books goes for 500"


def test_chord_as_a_workflow(bookshop: Bookshop, row: Any, env: WorkflowEnvironment):
    assert env.run(row.cheap_parcel, "books") == "books goes for 500"
    assert bookshop.effects("book") == ["books 500"]


# --- errors and retries -----------------------------------------------------------------------------


def test_link_error(bookshop: Bookshop, row: Any):
    with bookshop.worker():
        result = row.charge_or_release("reservation-42", -1)
        with pytest.raises(bookshop.outside.CardDeclined):
            result.get(timeout=20)
        wait_until(lambda: bookshop.effects("release") == ["reservation-42"])


def test_link_error_as_a_workflow(bookshop: Bookshop, row: Any, env: WorkflowEnvironment):
    with pytest.raises(WorkflowFailed, match="CardDeclined"):
        env.run(row.charged_or_released, "reservation-42", -1)
    assert bookshop.effects("release") == ["reservation-42"]
    assert env.run(row.charged_or_released, "reservation-43", 999) == "receipt-reservation-43"
    assert bookshop.effects("release") == ["reservation-42"]


def test_retry(bookshop: Bookshop, row: Any):
    bookshop.outside.trouble["find"] = 3
    assert row.look_up.apply(("978",)).get() == "Title of 978"  # in this process, Celery leaves out the countdowns
    assert len(bookshop.effects("find")) == 4
    bookshop.outside.trouble["find"] = 9
    with pytest.raises(ConnectionError):
        row.look_up.apply(("978",)).get()
    assert len(bookshop.effects("find")) == 4 + 6


def test_retry_as_a_workflow(bookshop: Bookshop, row: Any, env: WorkflowEnvironment):
    bookshop.outside.trouble["find"] = 3
    began = env.now
    assert env.run(row.titled, "978") == "Title of 978"
    assert env.now - began == pytest.approx(timedelta(minutes=1 + 2 + 4), rel=0.1)
    bookshop.outside.trouble["find"] = 9
    with pytest.raises(WorkflowFailed, match="ConnectionError"):
        env.run(row.titled, "978")
    assert len(bookshop.effects("find")) == 4 + 6


# --- time -------------------------------------------------------------------------------------------


def waiting_in(worker: Any) -> list[Request]:
    """What a worker holds until it is due."""
    arguments = [waiting.entry.args for waiting in worker.consumer.timer.schedule.queue]
    return [args[0] for args in arguments if args and isinstance(args[0], Request)]


def test_countdown(bookshop: Bookshop, row: Any):
    with bookshop.worker() as worker:
        result = row.ask_later("ann")
        (held,) = wait_until(lambda: [each for each in waiting_in(worker) if each.id == result.id])
        # In the memory of a worker, unacknowledged, for two weeks.
        assert timedelta(days=13) < held.eta - datetime.now(held.eta.tzinfo) < timedelta(days=15)
        assert not held.acknowledged
        result.revoke()


def test_countdown_as_a_workflow(bookshop: Bookshop, row: Any, env: WorkflowEnvironment):
    handle = env.start(row.review, "ann")
    env.advance(timedelta(days=13, hours=23))
    assert bookshop.effects("write") == []
    env.advance(timedelta(hours=1))
    assert handle.result() == "ann was told: how was it?"


# --- steps that depend on others --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ebook", "outcome"), [(True, "42 was told: here is your e-book"), (False, "parcel for reservation-42")]
)
def test_replace(bookshop: Bookshop, row: Any, ebook: bool, outcome: str):
    with bookshop.worker():
        assert row.deliver.delay("42", ebook).get(timeout=20) == outcome


@pytest.mark.parametrize(
    ("ebook", "outcome"), [(True, "42 was told: here is your e-book"), (False, "parcel for reservation-42")]
)
def test_replace_as_a_workflow(row: Any, env: WorkflowEnvironment, ebook: bool, outcome: str):
    assert env.run(row.delivery, "42", ebook) == outcome


def test_get(bookshop: Bookshop, row: Any):
    with bookshop.worker(concurrency=2):
        assert row.total.delay(["1", "22"]).get(timeout=20) == 300


def test_get_holds_its_slot_while_it_waits(bookshop: Bookshop, row: Any):
    with bookshop.worker(concurrency=1), pytest.raises(CeleryTimeout):
        row.total.delay(["1", "22"]).get(timeout=20)


def test_get_as_a_workflow_needs_no_slot_to_wait(bookshop: Bookshop, row: Any):
    with bookshop.worker(concurrency=1):
        assert bookshop.durable.start(row.basket, ["1", "22"]).result(timeout=30) == 300


# --- from outside -----------------------------------------------------------------------------------


def test_revoke(bookshop: Bookshop, row: Any):
    with bookshop.worker():
        result = row.place_with_an_hour("42")
        row.take_back(result, result.parent.get(timeout=20))
        wait_until(lambda: bookshop.effects("release") == ["reservation-42"])
        assert bookshop.effects("ship") == []


def test_revoke_as_a_workflow(bookshop: Bookshop, row: Any, env: WorkflowEnvironment):
    handle = env.start(row.with_an_hour, "42")
    row.take_order_back(handle)
    with pytest.raises(WorkflowCanceled, match="changed their mind"):
        handle.result()
    assert bookshop.outside.effects == ["reserve 42", "release reservation-42"]
    assert env.run(row.with_an_hour, "43") == "parcel for reservation-43"


def test_beat(bookshop: Bookshop, row: Any):
    with bookshop.worker():
        scheduler = Scheduler(app=bookshop.app)
        scheduler.apply_async(scheduler.schedule["nightly-report"])
        wait_until(lambda: bookshop.effects("write") == ["owner: 1000 cents"])


def test_beat_as_a_workflow(bookshop: Bookshop, row: Any, env: WorkflowEnvironment):
    row.nightly_workflow.apply().get()
    row.nightly_workflow.apply().get()  # another beat
    assert bookshop.durable.get_handle(f"report-{DAY}").result() == "owner was told: 1000 cents"
    assert bookshop.effects("write") == ["owner: 1000 cents"]
