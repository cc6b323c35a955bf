"""Signals inside a run: PARITY F05 to F09 and DESIGN §4, points 6 and 7, at the level of the runtime."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.errors import NondeterminismError, WorkflowCodeError
from orchestrator.model import commands as cmd
from tests.unit.runtime.harness import Run, act


def test_a16_a_wait_is_recorded_once_with_the_number_of_its_timer() -> None:
    async def waits() -> str:
        return await workflow.wait_for_signal("address", str, timeout=timedelta(days=3))

    run = Run(waits)
    timer, wait = run.start()
    assert isinstance(timer, cmd.StartTimer)
    assert isinstance(wait, cmd.OpenSignalWait)
    assert (wait.name, wait.timer, timer.duration_us) == ("address", timer.number, 3 * 86400 * 1_000_000)
    run.restart()
    assert run.instance.wait_names == ["address"]
    issued = run.signal("address", "Main St 1")
    assert [type(command).__name__ for command in issued] == ["CancelTimer", "CompleteRun"]
    assert run.result == "Main St 1"
    run.replayed()


def test_a16_the_earlier_event_wins_and_a_later_signal_stays_for_the_next_wait() -> None:
    async def waits() -> list[str]:
        seen = []
        try:
            seen.append(await workflow.wait_for_signal("go", str, timeout=5))
        except TimeoutError as error:
            seen.append(str(error))
        await asyncio.sleep(1)
        seen.append(await workflow.wait_for_signal("go", str, timeout=5))
        return seen

    run = Run(waits)
    run.start()
    run.fire(1)
    run.signal("go", "late")
    run.fire(3)
    assert run.result == ["wait_for_signal('go') timed out after 5 s", "late"]
    run.replayed()


def test_f05_waits_in_the_order_they_were_opened_take_the_oldest_signal_of_their_name() -> None:
    async def waits() -> list[str]:
        async def one(label: str, name: str) -> str:
            return f"{label}={await workflow.wait_for_signal(name, str)}"

        return list(await asyncio.gather(one("1", "a"), one("2", "b"), one("3", "a"), one("4", "a")))

    run = Run(waits)
    run.start()
    assert run.instance.wait_names == ["a", "b", "a", "a"]
    run.signal("a", "first")
    run.signal("a", "second")
    run.signal("c", "nobody's")
    run.signal("a", "third")
    assert run.instance.unhandled_signals == ["c"]
    run.signal("b", "other")
    assert run.result == ["1=first", "2=other", "3=second", "4=third"]
    assert run.instance.unhandled_signals == ["c"]


def test_f07_a_signal_kept_before_its_wait_is_delivered_without_suspending() -> None:
    async def waits() -> list[Any]:
        await act("slow")
        return [await workflow.wait_for_signal("go", int, timeout=60) for _ in range(3)]

    run = Run(waits)
    run.start()
    for value in (1, 2, 3):
        run.signal("go", value)
    issued = run.complete(1)
    assert [type(command).__name__ for command in issued] == ["OpenSignalWait"] * 3 + ["CompleteRun"]
    assert [wait.timer for wait in run.of(cmd.OpenSignalWait)] == [None] * 3
    assert run.result == [1, 2, 3]
    run.replayed()


def test_f08_a_signal_wakes_the_code_while_other_things_are_open() -> None:
    async def races() -> str:
        async def cancelled() -> str:
            await workflow.wait_for_signal("stop")
            return "stopped"

        done, pending = await asyncio.wait(
            [
                asyncio.create_task(cancelled()),
                asyncio.ensure_future(act("work")),
                asyncio.create_task(asyncio.sleep(99)),
            ],
            return_when=asyncio.FIRST_COMPLETED,
        )
        for task in pending:
            task.cancel()
        await asyncio.sleep(0)
        return str(done.pop().result())

    run = Run(races)
    run.start()
    issued = run.signal("stop")
    assert [type(command).__name__ for command in issued] == ["CancelActivity", "CancelTimer", "CompleteRun"]
    assert run.result == "stopped"


def test_f09_cancellation_closes_open_waits_and_signals_during_cleanup_are_accepted() -> None:
    async def cleans_up() -> str:
        try:
            await workflow.wait_for_signal("go", timeout=60)
        except asyncio.CancelledError:
            await act("cleanup")
            return str(await workflow.wait_for_signal("go"))
        return "?"

    run = Run(cleans_up)
    run.start()
    issued = run.cancel()
    assert [type(command).__name__ for command in issued] == ["CancelTimer", "ScheduleActivity"]
    assert run.instance.wait_names == []
    run.signal("go", "while cleaning")
    run.complete(4)
    assert run.result == "while cleaning"
    run.replayed()


def test_f06_the_same_wait_with_another_name_is_nondeterminism() -> None:
    async def waits() -> None:
        await workflow.wait_for_signal("go")

    async def other() -> None:
        await workflow.wait_for_signal("start")

    run = Run(waits)
    run.start()
    with pytest.raises(NondeterminismError, match=r"another name.*'go'.*'start'"):
        run.replayed(other)


def test_f06_a_wait_opened_after_a_cancelled_one_is_a_new_wait_with_a_new_number() -> None:
    async def waits() -> str:
        first = asyncio.create_task(workflow.wait_for_signal("go", str))
        await asyncio.sleep(1)
        first.cancel()
        return await workflow.wait_for_signal("go", str)

    run = Run(waits)
    run.start()
    run.fire(1)
    run.signal("go", "second")
    assert [wait.number for wait in run.of(cmd.OpenSignalWait)] == [2, 3]
    assert run.result == "second"


def test_a_cancelled_wait_takes_no_signal() -> None:
    class Cancels:
        def __init__(self) -> None:
            self.first: asyncio.Task[str] | None = None

        @workflow.run
        async def run(self) -> str:
            self.first = asyncio.create_task(workflow.wait_for_signal("go", str))
            await asyncio.sleep(0)
            return await workflow.wait_for_signal("go", str)

        @workflow.signal
        def stop(self) -> None:
            assert self.first is not None
            self.first.cancel()

    run = Run(Cancels, signals={"go": str})
    run.start()
    run.signal("stop")
    run.signal("go", "x")
    assert run.result == "x"


@pytest.mark.parametrize(
    ("declared", "sent", "expected"),
    [({"go": int}, (5,), 5), ({"go": None}, (), None), (None, (), None), (None, ({"a": 1},), {"a": 1})],
)
def test_the_value_has_the_declared_type_and_none_stands_for_no_value(declared: Any, sent: Any, expected: Any) -> None:
    async def waits() -> Any:
        return await workflow.wait_for_signal("go")

    run = Run(waits, signals=declared)
    run.start()
    run.signal("go", *sent)
    assert run.result == expected


@pytest.mark.parametrize(("hint", "sent"), [(int, ("five",)), (str, ()), (str, ("a", "b"))])
def test_a_value_that_does_not_fit_blocks_and_can_not_be_caught(hint: Any, sent: Any) -> None:
    async def waits() -> str:
        try:
            await workflow.wait_for_signal("go", hint)
        except Exception:
            return "caught"
        return "?"

    run = Run(waits)
    run.start()
    with pytest.raises(WorkflowCodeError, match="value of signal 'go'"):
        run.signal("go", *sent)


def test_a_wait_for_an_undeclared_or_handled_name_blocks_rather_than_waits_for_ever() -> None:
    async def undeclared() -> None:
        await workflow.wait_for_signal("adress")

    with pytest.raises(WorkflowCodeError, match="declares no signal 'adress'"):
        Run(undeclared, signals={"address": str}).start()

    class Handled:
        @workflow.run
        async def run(self) -> None:
            await workflow.wait_for_signal("go")

        @workflow.signal
        def go(self) -> None: ...

    with pytest.raises(WorkflowCodeError, match="has a handler"):
        Run(Handled).start()


# --- handlers -------------------------------------------------------------------------------------


class Counter:
    def __init__(self) -> None:
        self.seen: list[Any] = ["init"]
        self.ended = False

    @workflow.run
    async def run(self, expected: int) -> list[Any]:
        self.seen.append("run")
        await workflow.wait_condition(lambda: len(self.seen) >= expected)
        return self.seen

    @workflow.signal
    def add(self, amount: int, label: str = "") -> None:
        self.seen.append(f"{label}{amount}")

    @workflow.signal(name="slow-add")
    async def add_slowly(self, amount: int) -> None:
        self.seen.append(await act("check", amount))

    @workflow.query
    def count(self) -> int:
        return len(self.seen)


def test_handlers_run_in_order_after_init_and_before_run_when_the_messages_came_first() -> None:
    run = Run(Counter, 5)
    run.signal("add", 1)
    run.signal("add", 2, "x")
    run.start()
    assert not run.closed
    run.signal("add", 3)
    assert run.result == ["init", "1", "x2", "run", "3"]
    run.replayed()


def test_an_async_handler_is_a_task_and_shows_as_unfinished_until_it_ends() -> None:
    run = Run(Counter, 4)
    run.start()
    run.signal("slow-add", 7)
    assert run.instance.unfinished_handlers == ["slow-add"]
    run.complete(1, "seven")
    assert run.instance.unfinished_handlers == []
    run.signal("slow-add", 8)
    run.signal("add", 9)
    assert run.closed
    assert run.instance.unfinished_handlers == ["slow-add"]
    assert run.result == ["init", "run", "seven", "9"]


@pytest.mark.parametrize("name", ["add", "slow-add"])
def test_arguments_that_do_not_fit_block_the_run(name: str) -> None:
    run = Run(Counter, 4)
    run.start()
    with pytest.raises(WorkflowCodeError, match=f"arguments of signal '{name}'"):
        run.signal(name, "many")


class Failing:
    @workflow.run
    async def run(self) -> None:
        await asyncio.sleep(100)

    @workflow.signal
    def bad(self) -> None:
        raise ValueError("sync")

    @workflow.signal
    async def later(self) -> None:
        await asyncio.sleep(0)
        raise ValueError("async")

    @workflow.signal
    async def bug(self) -> None:
        await asyncio.sleep(0)
        raise TypeError("a bug")

    @workflow.signal
    def few(self, one: int, two: int) -> None: ...


@pytest.mark.parametrize(("name", "message"), [("bad", "sync"), ("later", "async")])
def test_an_exception_of_a_handler_fails_the_run(name: str, message: str) -> None:
    run = Run(Failing)
    run.start()
    run.signal(name)
    assert (run.failure.type, run.failure.message) == ("ValueError", message)


@pytest.mark.parametrize("name", ["bug", "few"])
def test_a_bug_in_a_handler_blocks_the_run(name: str) -> None:
    run = Run(Failing)
    run.start()
    with pytest.raises(WorkflowCodeError):
        run.signal(name)


def test_a_dynamic_handler_takes_every_name_without_a_handler() -> None:
    class Dynamic:
        def __init__(self) -> None:
            self.seen: list[Any] = []

        @workflow.run
        async def run(self) -> list[Any]:
            value = await workflow.wait_for_signal("declared", int)
            return [*self.seen, value]

        @workflow.signal
        def known(self, value: int) -> None:
            self.seen.append(["known", value])

        @workflow.signal(dynamic=True)
        def anything(self, name: str, args: list[Any]) -> None:
            self.seen.append([name, args])

    run = Run(Dynamic, signals={"declared": int})
    assert run.definition.declared_signals() is None
    run.start()
    run.signal("known", 1)
    run.signal("other", 1, "two")
    run.signal("declared", 3)
    assert run.result == [["known", 1], ["other", [1, "two"]], 3]


def test_a_loop_that_catches_everything_does_not_spin_over_what_blocks() -> None:
    rounds: list[int] = []

    async def undeclared() -> None:
        while len(rounds) < 1000:
            try:
                await workflow.wait_for_signal("adress")
            except Exception:
                rounds.append(1)

    with pytest.raises(WorkflowCodeError, match="declares no signal 'adress'"):
        Run(undeclared, signals={"address": str}).start()
    assert rounds == []
