"""wait_condition: when predicates are looked at, and what they may do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.errors import InsideWorkflow, WorkflowCodeError
from orchestrator.model import commands as cmd
from tests.unit.runtime.harness import Run, act


class Box:
    def __init__(self) -> None:
        self.value = 0

    @workflow.signal
    def put(self, value: int) -> None:
        self.value = value


def test_a_condition_that_holds_already_needs_no_timer_and_does_not_suspend() -> None:
    async def at_once() -> str:
        await workflow.wait_condition(lambda: True, timeout=5)
        return "done"

    run = Run(at_once)
    assert [type(command).__name__ for command in run.start()] == ["CompleteRun"]


def test_a_condition_ends_when_it_holds_and_its_timer_is_cancelled() -> None:
    class Waits(Box):
        @workflow.run
        async def run(self) -> int:
            await workflow.wait_condition(lambda: self.value > 3, timeout=5)
            return self.value

    run = Run(Waits)
    run.start()
    assert run.signal("put", 1) == []
    issued = run.signal("put", 4)
    assert [type(command).__name__ for command in issued] == ["CancelTimer", "CompleteRun"]
    assert run.result == 4
    run.replayed()


def test_conditions_are_looked_at_in_order_and_again_until_nothing_changes() -> None:
    class Chain(Box):
        def __init__(self) -> None:
            super().__init__()
            self.log: list[str] = []

        @workflow.run
        async def run(self) -> list[str]:
            async def step(index: int) -> None:
                await workflow.wait_condition(lambda: self.value == index)
                self.log.append(f"step {index}")
                self.value += 1

            await asyncio.gather(*(step(index) for index in (3, 1, 2)))
            return self.log

    run = Run(Chain)
    run.start()
    run.signal("put", 1)
    assert run.result == ["step 1", "step 2", "step 3"]


def test_two_waits_that_hold_together_both_end_in_the_order_they_began() -> None:
    class Both(Box):
        @workflow.run
        async def run(self) -> list[str]:
            log: list[str] = []

            async def one(name: str) -> None:
                await workflow.wait_condition(lambda: self.value == 1)
                log.append(name)

            await asyncio.gather(one("a"), one("b"), one("c"))
            return log

    run = Run(Both)
    run.start()
    run.signal("put", 1)
    assert run.result == ["a", "b", "c"]


def test_what_a_predicate_raises_goes_to_its_waiter() -> None:
    class Raises(Box):
        @workflow.run
        async def run(self) -> str:
            def predicate() -> bool:
                if self.value:
                    raise ValueError("bad predicate")
                return False

            try:
                await workflow.wait_condition(predicate)
            except ValueError as error:
                return str(error)
            return "?"

    run = Run(Raises)
    run.start()
    run.signal("put", 1)
    assert run.result == "bad predicate"


@pytest.mark.parametrize(
    "command",
    [
        lambda: act("x"),
        workflow.uuid4,
        lambda: workflow.random().random(),
        lambda: workflow.side_effect(int),
        lambda: asyncio.get_running_loop().call_later(1, print),
        lambda: asyncio.get_running_loop().call_later(0, print),
        lambda: asyncio.get_running_loop().call_soon(print),
    ],
)
def test_a_predicate_may_not_ask_for_anything(command: Any) -> None:
    async def tries() -> str:
        try:
            await workflow.wait_condition(command)
        except InsideWorkflow as error:
            return str(error)
        return "?"

    run = Run(tries)
    assert [type(issued).__name__ for issued in run.start()] == ["CompleteRun"]
    assert "predicate only reads" in run.result


def test_an_async_predicate_is_refused() -> None:
    async def later() -> bool:
        return True

    async def tries() -> None:
        await workflow.wait_condition(later)

    run = Run(tries)
    run.start()
    assert run.failure.type == "InvalidArgument"


def test_an_uncaught_time_out_fails_the_run() -> None:
    async def waits() -> None:
        await workflow.wait_condition(lambda: False, timeout=1)

    run = Run(waits)
    run.start()
    run.fire(1)
    assert (run.failure.type, run.failure.message) == ("TimeoutError", "wait_condition timed out after 1 s")


def test_a_condition_cancelled_with_its_task_is_looked_at_no_more() -> None:
    looked: list[int] = []

    async def waits() -> str:
        def predicate() -> bool:
            looked.append(1)
            return False

        task = asyncio.create_task(workflow.wait_condition(predicate))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(1)
        return "done"

    run = Run(waits)
    run.start()
    run.fire(1)
    count = len(looked)
    run.fire(3 if 3 in run.instance.open_timers else 2)
    assert len(looked) == count
    assert run.result == "done"


def test_a_condition_of_zero_seconds_is_a_timer_that_is_due_at_once() -> None:
    async def waits() -> str:
        try:
            await workflow.wait_condition(lambda: False, timeout=0)
        except TimeoutError:
            return "late"
        return "?"

    run = Run(waits)
    (timer,) = run.start()
    assert isinstance(timer, cmd.StartTimer)
    assert timer.duration_us == 0
    run.fire(1)
    assert run.result == "late"


def test_a_bug_in_a_predicate_blocks() -> None:
    async def waits() -> None:
        await workflow.wait_condition(lambda: missing)  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(WorkflowCodeError, match="missing"):
        Run(waits).start()
