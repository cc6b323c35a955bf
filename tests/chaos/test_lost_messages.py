"""Messages that vanish with their queue come back; a backlog is never sent twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery
from kombu import Connection

from tests.chaos.conftest import BRISK, FULL, MakeYard, Yard
from tests.support.waiting import wait_until

Figure = Callable[[str, str], None]
COUNT = 20


def damage(yard: Yard, do: Callable[[Any], Any]) -> None:
    """Does something to the broker over a channel."""
    with Connection(yard.broker) as connection:
        do(connection.channel())


def finished(handle: Any, figure: Figure, what: str, since: float) -> None:
    assert handle.result(timeout=100) == COUNT
    figure(what, f"{time.monotonic() - since:.1f} s until all {COUNT} were done")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["purged", "deleted"])
def test_a_queue_that_loses_its_waiting_activities_gets_them_again(yard: Yard, how: str, figure: Figure) -> None:
    yard.worker(queues=["celery"])
    handle = yard.start("ch_fan", "fan", COUNT, "later")
    wait_until(lambda: yard.depth("later") == COUNT, 40)
    damage(yard, lambda channel: channel.queue_purge("later") if how == "purged" else channel.queue_delete("later"))
    assert yard.depth("later") < COUNT
    since = time.monotonic()
    yard.worker(queues=["later"])
    finished(handle, figure, f"queue {how}, worker starts", since)
    assert len(yard.ledger.lines("executions")) == COUNT


@pytest.mark.slow
def test_a_queue_deleted_under_its_consumer_is_consumed_again(yard: Yard, figure: Figure) -> None:
    yard.worker(concurrency=1)
    held = yard.start("ch_hold", "hold")
    wait_until(lambda: yard.ledger.lines("hold"), 40)
    orders = [yard.start("ch_order", f"o{number}", 0) for number in range(COUNT)]
    wait_until(lambda: yard.depth("celery") > 0, 20)
    damage(yard, lambda channel: channel.queue_delete("celery"))
    since = time.monotonic()
    yard.ledger.note("hold.release")
    assert held.result(timeout=100) == "hold"
    assert [len(order.result(timeout=100)) for order in orders] == [10] * COUNT
    figure("queue deleted under its consumer", f"{time.monotonic() - since:.1f} s until all were done")


@pytest.mark.slow
def test_waiting_and_running_tasks_that_are_revoked_as_flower_does_are_done_all_the_same(
    yard: Yard, figure: Figure
) -> None:
    worker = yard.worker(concurrency=1)
    app = Celery(broker=yard.broker, set_as_current=False)
    handles = [yard.start("ch_hold", f"hold{number}") for number in range(3)]
    wait_until(lambda: yard.ledger.lines("hold0"), 40)
    received = wait_until(lambda: _activities(worker.logs()), 40)
    since = time.monotonic()
    app.control.revoke(received, terminate=True, signal="SIGTERM")
    wait_until(lambda: len(yard.ledger.lines("hold0")) > 1, 60, message="the revoked activity runs again")
    figure("a running task was revoked with terminate", f"{time.monotonic() - since:.1f} s until it ran again")
    for number in range(3):
        yard.ledger.note(f"hold{number}.release")
    assert [handle.result(timeout=60) for handle in handles] == ["hold0", "hold1", "hold2"]


def _activities(log: str) -> list[str]:
    return [line.split("[")[-1].split("]")[0] for line in log.splitlines() if "activity:ch_held" in line]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_message_of_a_backlog_of_thousands_is_sent_twice(
    make_yard: MakeYard, rabbitmq_url: str, postgres_url: str, figure: Figure
) -> None:
    size, runs = (500, 20) if FULL else (200, 5)
    # What is not sent in time waits until its queue is empty, and then there would be no whole backlog to look at.
    patient = {"orchestrator_resend_after": 1, "orchestrator_publish_timeout": 60}
    yard = make_yard(rabbitmq_url, postgres_url, **{**BRISK, **patient})
    yard.worker(queues=["celery"])
    handles = [yard.start("ch_fan", f"f{number}", size, "later") for number in range(runs)]
    wait_until(lambda: yard.depth("later") >= size * runs, 150, interval=0.5)
    pending = [yard.durable.start("ch_waits", id=f"p{number}", queue="nobody") for number in range(100)]
    until = time.monotonic() + (30 if FULL else 12)  # each row is looked at several times: after 1, 3, 7 seconds
    while time.monotonic() < until:
        assert yard.depth("later") == size * runs
        assert yard.depth("nobody") == len(pending)
        time.sleep(0.5)
    consumers = [yard.worker(queues=["later", "nobody"], args=["--prefetch-multiplier", "1"]) for _ in range(2)]
    assert [handle.result(timeout=150) for handle in handles] == [size] * runs
    again = sum(worker.logs().count("is not run") for worker in consumers)
    figure("messages sent twice while a backlog was worked off", f"{again} of {size * runs}")
    assert len(yard.ledger.lines("executions")) == size * runs
    # What one worker has fetched ahead looks lost when another one claims later work: a few at a time.
    assert again < size * runs / 20
