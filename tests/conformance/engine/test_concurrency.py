"""Claims about several at once, made with as many real connections."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.engine import sweeping
from orchestrator.engine.decision import Outcome, decide
from orchestrator.engine.sweep import sweep
from orchestrator.model.records import RunStatus
from orchestrator.store.sweeps import Tick
from orchestrator.types import SECOND
from tests.conformance.engine.world import World

REPEATS = 50


others_ended = threading.Semaphore(0)


@workflow.defn(name="concurrency.slow")
async def slow() -> str:
    for _ in range(9):  # holds the run's lock until all the others have ended
        assert others_ended.acquire(timeout=30), "a decider waits for the lock"
    return "done"


@workflow.defn(name="concurrency.many_timers")
async def many_timers(count: int) -> int:
    await asyncio.gather(*(asyncio.sleep(10 + index / count) for index in range(count)))
    return count


@workflow.defn(name="concurrency.count")
class Count:
    def __init__(self) -> None:
        self.seen: list[str] = []

    @workflow.run
    async def run(self, count: int) -> list[str]:
        await workflow.wait_condition(lambda: len(self.seen) >= count)
        return self.seen

    @workflow.signal
    def add(self, value: str) -> None:
        self.seen.append(value)


def at_once(actions: list[Callable[[], Any]], timeout: float = 60) -> list[Any]:
    """Runs all actions at the same moment, each in a thread; returns what they returned or raised."""
    barrier = threading.Barrier(len(actions))
    results: list[Any] = [None] * len(actions)

    def act(index: int, action: Callable[[], Any]) -> None:
        barrier.wait(timeout)
        try:
            results[index] = action()
        except BaseException as error:
            results[index] = error

    threads = [threading.Thread(target=act, args=item) for item in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
        assert not thread.is_alive()
    return results


@pytest.mark.parametrize("repeat", range(REPEATS))
def test_ten_deciders_woken_for_one_run_one_decides_and_nine_end_without_waiting(
    make_world: Callable[..., World], repeat: int
) -> None:
    world = make_world(pool_size=12)
    world.start("concurrency.slow")
    run_id = world.run().run_id
    at_once([world.run] * 10)  # opens the connections, so that the ten arrive together

    def decide_and_tell() -> Outcome:
        outcome = decide(world.engine, run_id)
        others_ended.release()
        return outcome

    outcomes = at_once([decide_and_tell] * 10)
    others_ended.acquire(blocking=False)  # the decider's own
    assert sorted(outcomes) == sorted([Outcome.DECIDED] + [Outcome.TAKEN] * 9)
    assert world.status() is RunStatus.COMPLETED


def test_a_thousand_timers_due_in_one_second_all_fire_once_with_two_sweeps(make_world: Callable[..., World]) -> None:
    one, other = make_world(), make_world()
    one.start("concurrency.many_timers", 1000)
    one.decisions()
    one.clock.advance_to(one.clock.now() + 11 * SECOND + SECOND // 10)
    other.clock.advance_to(one.clock.now())
    tick = Tick(clock=0, at=one.clock.now(), previous_at=None)

    def fire(world: World) -> int:
        total = 0
        while count := sweeping.fire_timers(world.engine, tick, 50):
            total += count
        return total

    counts = at_once([lambda: fire(one), lambda: fire(other)])
    assert sum(counts) == 1000
    one.work()
    other.work()
    assert one.result() == 1000
    assert one.kinds().count("TimerFired") == 1000


def test_a_timer_set_before_an_outage_fires_within_a_sweep_of_its_end(world: World) -> None:
    world.start("concurrency.many_timers", 1)
    world.decisions()
    world.clock.advance_to(world.clock.now() + 20 * SECOND)  # nobody sweeps for twenty seconds
    world.tick(timedelta(seconds=1))
    world.work()
    assert world.status() is RunStatus.COMPLETED


def test_only_one_of_many_sweeps_ticks_in_an_interval(make_world: Callable[..., World]) -> None:
    world = make_world(pool_size=12)
    sweep(world.engine, look_ahead=False)
    world.clock.advance_to(world.clock.now() + 2 * SECOND)
    reports = at_once([lambda: sweep(world.engine, look_ahead=False)] * 8)
    assert [type(report) for report in reports if isinstance(report, BaseException)] == []
    assert sum(report is not None for report in reports) == 1


def test_no_signal_is_lost_between_senders_and_deciders(make_world: Callable[..., World]) -> None:
    world = make_world(pool_size=12)
    senders, each = 4, 50
    world.start("concurrency.count", senders * each)
    done = threading.Event()

    def send(sender: int) -> None:
        for number in range(each):
            world.signal("add", f"{sender}-{number}")

    def decider() -> None:
        while not done.is_set():
            message = world.transport.pop()
            if message is None:
                time.sleep(0.001)
            else:
                decide(world.engine, message.run_id)

    deciders = [threading.Thread(target=decider) for _ in range(2)]
    for thread in deciders:
        thread.start()
    failed = [item for item in at_once([lambda s=s: send(s) for s in range(senders)]) if item]  # type: ignore[misc]
    deadline = time.monotonic() + 30
    while world.status().is_open and time.monotonic() < deadline:
        time.sleep(0.01)
    done.set()
    for thread in deciders:
        thread.join(30)
    assert failed == []
    seen = world.result()
    assert len(seen) == len(set(seen)) == senders * each
    for sender in range(senders):
        own = [int(value.split("-")[1]) for value in seen if value.startswith(f"{sender}-")]
        assert own == sorted(own), "one sender's signals keep their order"
