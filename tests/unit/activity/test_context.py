"""Heartbeats, cancellation and facts of a running attempt."""

import asyncio
import logging
from dataclasses import dataclass

import pytest

from orchestrator import activity
from orchestrator.activity.context import ActivityInfo, RunningActivity, entered, heartbeat_interval
from orchestrator.errors import Cancelled, PayloadError
from orchestrator.model.payloads import PayloadConverter
from orchestrator.types import SECOND
from tests.support.waiting import await_until


@dataclass
class Reply:
    current: bool = True
    cancel_requested: bool = False


@dataclass
class Page:
    number: int
    of: str


class Store:
    """Takes heartbeats; answers as it is told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.stored: list[bytes | None] = []
        self.reply = Reply()
        self.attempt = RunningActivity(
            ActivityInfo(activity="watch", task_id="t", idempotency_key="run/1", workflow_id="order-42", attempt=2),
            self.report,
            interval=10,
            monotonic=lambda: self.now,
        )

    def report(self, details: bytes | None) -> Reply:
        self.stored.append(details)
        return self.reply

    def details(self) -> ActivityInfo:
        last = next(details for details in reversed(self.stored) if details is not None)
        return ActivityInfo(
            activity="watch", task_id="t", idempotency_key="k", _details=last, _converter=PayloadConverter()
        )


def test_the_first_heartbeat_is_stored_at_once_and_the_next_when_the_interval_has_passed():
    store = Store()
    with entered(store.attempt):
        for step in range(100):
            activity.heartbeat(step)
        assert len(store.stored) == 1
        store.now = 10.0
        activity.heartbeat(100)
    assert len(store.stored) == 2
    assert store.details().heartbeat_details(int) == 100


def test_details_that_were_kept_back_are_stored_at_the_end():
    store = Store()
    with entered(store.attempt):
        activity.heartbeat(1)
        activity.heartbeat(2)
    store.attempt.flush()
    store.attempt.flush()
    assert len(store.stored) == 2
    assert store.details().heartbeat_details(int) == 2


def test_a_heartbeat_without_details_keeps_the_last_ones():
    store = Store()
    with entered(store.attempt):
        activity.heartbeat("page 3")
        store.now = 20.0
        activity.heartbeat()
    assert store.stored[1] is None


def test_details_come_back_as_the_types_that_are_asked_for():
    store = Store()
    with entered(store.attempt):
        activity.heartbeat(Page(3, "7"), "cursor")
    info = store.details()
    assert info.heartbeat_details(Page, str) == (Page(3, "7"), "cursor")
    with pytest.raises(PayloadError):
        info.heartbeat_details(int, str)
    assert ActivityInfo(activity="a", task_id="t", idempotency_key="k").heartbeat_details(int) is None


def test_details_that_cannot_be_stored_are_refused_at_the_call():
    store = Store()
    with entered(store.attempt), pytest.raises(PayloadError):
        activity.heartbeat(object())
    assert store.stored == []


@pytest.mark.parametrize(
    ("reply", "words"), [(Reply(cancel_requested=True), "cancelled"), (Reply(current=False), "taken over")]
)
def test_a_heartbeat_raises_the_cancellation_it_learns_of_also_between_two_stored_ones(reply: Reply, words: str):
    store = Store()
    store.reply = reply
    with entered(store.attempt):
        assert activity.is_cancelled() is False
        for _ in range(2):
            with pytest.raises(Cancelled, match=words):
                activity.heartbeat()
        assert activity.is_cancelled() is True
    assert len(store.stored) == 1


def test_inside_an_event_loop_storing_does_not_block_it():
    store = Store()

    async def body() -> None:
        with entered(store.attempt):
            activity.heartbeat(1)
        await await_until(stored)

    async def stored() -> bool:
        return bool(store.stored)

    asyncio.run(body())


def test_the_interval_is_a_third_of_the_timeout_within_bounds():
    assert heartbeat_interval(None) == 1.0
    assert heartbeat_interval(3 * SECOND) == 1.0
    assert heartbeat_interval(3600 * SECOND) == 10.0


def test_the_logger_carries_the_ids_of_the_attempt(caplog: pytest.LogCaptureFixture):
    store = Store()
    with caplog.at_level(logging.INFO), entered(store.attempt):
        logging.getLogger("celery.task").propagate = True
        activity.logger.logger.parent = logging.getLogger()
        activity.logger.info("charging %s", "42", extra={"cents": 3})
    record = caplog.records[-1]
    assert (record.getMessage(), record.workflow_id, record.attempt, record.cents) == ("charging 42", "order-42", 2, 3)
