"""A cancel request as workflow code sees it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from tests.unit.runtime.harness import Run, act


def test_a15_an_acknowledged_cancellation_closes_the_run_with_its_reason() -> None:
    async def waits() -> None:
        await act("work")

    run = Run(waits)
    run.start()
    issued = run.cancel("no budget")
    assert [type(command).__name__ for command in issued] == ["CancelActivity", "CancelRun"]
    assert isinstance(issued[-1], cmd.CancelRun)
    assert issued[-1].reason == "no budget"
    run.replayed()


def test_a30_the_code_may_clean_up_with_activities_and_timers() -> None:
    async def cleans_up() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await act("refund")
            await asyncio.sleep(1)
            raise

    run = Run(cleans_up)
    run.start()
    run.cancel()
    run.complete(3)
    run.fire(4)
    assert isinstance(run.commands[-1], cmd.CancelRun)
    run.replayed()


def test_f16_code_that_goes_on_goes_on_and_a_second_request_is_delivered_too() -> None:
    async def stubborn() -> list[str]:
        seen: list[str] = []
        for _ in range(2):
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                seen.append("cancelled")
        return seen

    run = Run(stubborn)
    run.start()
    run.cancel("first")
    assert not run.closed
    run.cancel("second")
    assert run.result == ["cancelled", "cancelled"]


def test_the_reason_of_the_last_request_is_recorded() -> None:
    async def second_time() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(100)

    run = Run(second_time)
    run.start()
    run.cancel("first")
    run.cancel("second")
    assert isinstance(run.commands[-1], cmd.CancelRun)
    assert run.commands[-1].reason == "second"


def test_an_error_during_clean_up_fails_the_run() -> None:
    async def breaks() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            raise ValueError("while cleaning") from None

    run = Run(breaks)
    run.start()
    run.cancel()
    assert run.failure.message == "while cleaning"


def test_cancelled_error_without_a_request_fails_the_run() -> None:
    async def raises() -> None:
        raise asyncio.CancelledError

    run = Run(raises)
    run.start()
    assert run.failure.type == "CancelledError"


def test_f16_cancelling_an_inner_group_leaves_the_outer_running() -> None:
    async def outer() -> str:
        async def inner() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(50))
                group.create_task(_work())

        async def _work() -> None:
            await act("work")

        task = asyncio.create_task(inner())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return await act("go on")

    run = Run(outer)
    run.start()
    issued = run.fire(1)
    assert [type(command).__name__ for command in issued] == ["CancelActivity", "CancelTimer", "ScheduleActivity"]
    run.complete(6, "went on")
    assert run.result == "went on"
    run.replayed()


def test_everything_below_a_gather_is_cancelled() -> None:
    async def parallel() -> None:
        await asyncio.gather(act("a"), asyncio.sleep(9), workflow.wait_for_signal("go", timeout=9))

    run = Run(parallel)
    run.start()
    issued = run.cancel()
    assert sorted(type(command).__name__ for command in issued) == [
        "CancelActivity",
        "CancelRun",
        "CancelTimer",
        "CancelTimer",
    ]
    run.replayed()


@pytest.mark.parametrize("order", ["cancel last", "cancel first"])
def test_a_cancel_beside_a_completion_runs_clean_up_or_completes_normally(order: str) -> None:
    async def work() -> str:
        try:
            return str(await act("work"))
        except asyncio.CancelledError:
            await act("cleanup")
            raise

    run = Run(work)
    run.start()
    if order == "cancel last":
        run.complete(1, "done")
        assert run.result == "done"
        assert not run.instance.is_open(ev.CancelRequested(reason=""))
    else:
        run.cancel()
        assert not run.instance.is_open(ev.ActivityCompleted(number=1, attempt=1, result=b""))
        run.complete(3)
        assert isinstance(run.commands[-1], cmd.CancelRun)


def test_an_endless_loop_of_short_activities_ends_at_any_moment() -> None:
    async def loop() -> None:
        while True:
            await act("short")

    for moment in range(6):
        run = Run(loop)
        run.start()
        for number in range(1, moment + 1):
            run.complete(number)
        run.cancel()
        assert isinstance(run.commands[-1], cmd.CancelRun)


def test_a_request_before_the_start_is_seen_at_the_first_await() -> None:
    class Late:
        @workflow.run
        async def run(self) -> str:
            act("begun")
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                return "saw it"
            return "?"

    run = Run(Late)
    run.cancel()
    run.start()
    assert run.result == "saw it"


def test_one_task_cancelled_twice_in_one_activation_emits_one_command() -> None:
    class Twice:
        def __init__(self) -> None:
            self.work: Any = None

        @workflow.run
        async def run(self) -> None:
            self.work = act("work")
            await self.work

        @workflow.signal
        def stop(self) -> None:
            self.work.cancel()
            self.work.cancel()

    run = Run(Twice)
    run.start()
    run.signal("stop")
    assert len(run.of(cmd.CancelActivity)) == 1
    assert run.closed


def test_asyncio_timeout_tells_its_own_cancellation_from_a_request() -> None:
    async def limited() -> str:
        try:
            async with asyncio.timeout(10):
                await act("work")
        except TimeoutError:
            return "timed out"
        return "?"

    run = Run(limited)
    run.start()
    run.cancel()
    assert isinstance(run.commands[-1], cmd.CancelRun)
    other = Run(limited)
    other.start()
    other.fire(1)
    assert other.result == "timed out"
