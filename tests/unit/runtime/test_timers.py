"""asyncio's and the library's own waits on durable timers."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.errors import InvalidArgument
from orchestrator.model import commands as cmd
from tests.unit.runtime.harness import SECOND, START, Run


def test_asyncio_sleep_is_a_durable_timer_due_at_event_time_plus_duration() -> None:
    async def nap() -> str:
        await asyncio.sleep(1.5)
        return "rested"

    run = Run(nap)
    (timer,) = run.start()
    assert isinstance(timer, cmd.StartTimer)
    assert (timer.number, timer.due_at, timer.duration_us) == (1, START + 1_500_000, 1_500_000)
    run.fire(1)
    assert run.result == "rested"


@pytest.mark.parametrize("seconds", [0.1, 0.3, 1.1, 2.675, 1e-6, 123456.789012, 86400 * 365 * 40 + 0.000001])
def test_durations_become_exact_microseconds_however_the_run_has_aged(seconds: float) -> None:
    async def naps() -> None:
        await asyncio.sleep(1234567.891011)
        for wait in (asyncio.sleep(seconds), workflow.sleep(seconds)):
            await wait
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()

    run = Run(naps)
    run.start()
    for number in (1, 2, 3):
        run.fire(number, after=0.000_007)
    assert [timer.duration_us for timer in run.of(cmd.StartTimer)[1:]] == [round(seconds * SECOND)] * 3


def test_asyncio_sleep_of_zero_is_a_turn_of_the_loop_and_workflow_sleep_of_zero_a_timer() -> None:
    async def naps() -> str:
        await asyncio.sleep(0)
        await asyncio.sleep(-1)
        await workflow.sleep(0)
        await workflow.sleep(timedelta(seconds=-5))
        return "done"

    run = Run(naps)
    assert [command.duration_us for command in run.start() if isinstance(command, cmd.StartTimer)] == [0]
    run.fire(1)
    run.fire(2)
    assert run.result == "done"


@pytest.mark.parametrize("limit", [0, -1, -math.inf])
def test_asyncio_timeout_of_zero_and_less_needs_no_timer(limit: float) -> None:
    async def at_once() -> str:
        try:
            async with asyncio.timeout(limit):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "?"

    run = Run(at_once)
    run.start()
    assert run.result == "timed out"
    assert len(run.commands) == 1


def test_a_timeout_that_is_not_reached_is_cancelled_and_one_of_the_same_activation_leaves_no_trace() -> None:
    async def limits() -> None:
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await asyncio.sleep(1)
        async with asyncio.timeout(None):
            await asyncio.sleep(1)

    run = Run(limits)
    assert [(type(c).__name__, getattr(c, "number", None)) for c in run.start()] == [
        ("StartTimer", 3),
        ("StartTimer", 4),
    ]
    issued = run.fire(4)
    assert isinstance(issued[0], cmd.CancelTimer)
    assert (issued[0].number, issued[0].target) == (5, 3)
    run.fire(6)
    assert run.closed


def test_wait_for_and_timeout_raise_the_builtin_timeout_error() -> None:
    async def waits() -> list[str]:
        seen = []
        for wait in (
            lambda: asyncio.wait_for(asyncio.Event().wait(), 3),
            lambda: workflow.wait_condition(lambda: False, timeout=3),
            lambda: workflow.wait_for_signal("never", timeout=3),
        ):
            try:
                await wait()
            except TimeoutError as error:
                seen.append(type(error).__name__)
        return seen

    run = Run(waits)
    run.start()
    while not run.closed:
        (number,) = run.instance.open_timers
        run.fire(number)
    assert run.result == ["TimeoutError"] * 3


def test_only_the_timer_that_fired_runs_its_callback() -> None:
    async def race() -> list[str]:
        order: list[str] = []

        async def nap(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            order.append(name)

        await asyncio.gather(nap("a", 5), nap("b", 5), nap("c", 1))
        return order

    run = Run(race)
    run.start()
    run.fire(2)
    run.fire(3)
    run.fire(1)
    assert run.result == ["b", "c", "a"]


def test_the_loops_time_is_the_time_of_the_event_since_the_start_of_the_run() -> None:
    async def times() -> list[float]:
        loop = asyncio.get_running_loop()
        seen = [loop.time()]
        await asyncio.sleep(2)
        seen.append(loop.time())
        await asyncio.sleep(0)
        seen.append(loop.time())
        return seen

    run = Run(times)
    run.now += 250_000
    run.start()
    run.fire(1, after=0.5)
    assert run.result == [0.25, 2.75, 2.75]


def test_call_later_and_call_at_are_timers_that_can_be_cancelled() -> None:
    async def calls() -> list[str]:
        loop = asyncio.get_running_loop()
        seen: list[str] = []
        loop.call_later(1, seen.append, "later")
        loop.call_at(loop.time() + 2, seen.append, "at")
        loop.call_later(3, seen.append, "never").cancel()
        loop.call_later(0, seen.append, "soon")
        await asyncio.sleep(10)
        return seen

    run = Run(calls)
    assert len(run.start()) == 3, "the cancelled one left no trace"
    run.fire(1)
    run.fire(2)
    run.fire(5)
    assert run.result == ["soon", "later", "at"]


def test_a_timer_of_an_earlier_activation_is_cancelled_once_however_often_it_is_told() -> None:
    async def once() -> None:
        loop = asyncio.get_running_loop()
        handle = loop.call_later(100, print)
        await asyncio.sleep(1)
        for _ in range(5):
            handle.cancel()
        await asyncio.sleep(1)
        handle.cancel()

    run = Run(once)
    run.start()
    run.fire(2)
    run.fire(4)
    assert len(run.of(cmd.CancelTimer)) == 1


def test_sleep_until_takes_an_instant_and_records_no_duration() -> None:
    async def until(instants: list[datetime]) -> str:
        for instant in instants:
            await workflow.sleep_until(instant)
        return "there"

    instants = [datetime(2030, 1, 1, tzinfo=UTC), datetime(1999, 1, 1, tzinfo=UTC)]
    run = Run(until, instants)
    run.start()
    run.fire(1)
    run.fire(2)
    assert run.result == "there"
    assert [(timer.due_at, timer.duration_us) for timer in run.of(cmd.StartTimer)] == [
        (1_893_456_000 * SECOND, None),
        (915_148_800 * SECOND, None),
    ]


@pytest.mark.parametrize(
    ("wait", "argument"),
    [
        (lambda: asyncio.sleep(math.inf), "delay"),
        (lambda: asyncio.sleep(math.nan), "delay"),
        (lambda: workflow.sleep(math.nan), "duration"),
        (lambda: workflow.sleep(-math.inf), "duration"),
        (lambda: workflow.sleep(timedelta.max), "duration"),
        (lambda: workflow.sleep(True), "duration"),
        (lambda: workflow.sleep("1"), "duration"),
        (lambda: workflow.sleep_until(datetime(2030, 1, 1)), "instant"),
        (lambda: workflow.wait_condition(lambda: False, timeout=math.nan), "timeout"),
        (lambda: workflow.wait_for_signal("x", timeout="soon"), "timeout"),
        (lambda: workflow.wait_for_signal(""), "name"),
        (lambda: workflow.wait_condition(True), "predicate"),
    ],
)
def test_a_bad_duration_is_refused_by_name_and_nothing_is_asked_for(wait: Any, argument: str) -> None:
    async def bad() -> str:
        try:
            await wait()
        except ValueError as error:
            # From Python 3.13 on asyncio refuses NaN itself.
            return error.argument if isinstance(error, InvalidArgument) else "delay"
        return "accepted"

    run = Run(bad)
    run.start()
    assert run.result == argument
    assert len(run.commands) == 1
