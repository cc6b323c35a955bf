"""How a run ends, or is blocked, by what leaves its code (DESIGN §1)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.errors import (
    ApplicationError,
    DecisionTimeout,
    NondeterminismError,
    ReplayError,
    WorkflowCodeError,
)
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from tests.unit.runtime.harness import CONVERTER, Run, act, new_instance


class OutOfStock(Exception):
    pass


class Both(ApplicationError, TypeError):
    """An error made on purpose, whatever else it is."""


def test_a23_the_result_is_optional_and_keeps_its_type() -> None:
    async def nothing() -> None: ...

    async def something() -> timedelta:
        return timedelta(minutes=1)

    first, second = Run(nothing), Run(something)
    first.start()
    second.start()
    assert first.result is None
    assert CONVERTER.decode(second.commands[-1].result, timedelta) == timedelta(minutes=1)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("v"),
        KeyError("k"),
        TimeoutError("t"),
        OutOfStock("none"),
        ApplicationError("a"),
        Both("b"),
        OSError("o"),
    ],
)
def test_an_exception_fails_the_run(error: Exception) -> None:
    async def raises() -> None:
        raise error

    run = Run(raises)
    run.start()
    assert run.failure.type == type(error).__name__
    run.replayed()


@pytest.mark.parametrize(
    "error",
    [
        NameError("n"),
        AttributeError("a"),
        ImportError("i"),
        TypeError("t"),
        RecursionError("r"),
        NotImplementedError("n"),
        UnboundLocalError("u"),
        ModuleNotFoundError("m"),
    ],
)
def test_an_error_that_a_deploy_can_cure_blocks_the_run(error: Exception) -> None:
    async def raises() -> None:
        raise error

    with pytest.raises(WorkflowCodeError, match="test_ending.py") as caught:
        Run(raises).start()
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [NondeterminismError("n"), DecisionTimeout("d")])
def test_a_replay_error_raised_inside_blocks_as_itself(error: ReplayError) -> None:
    async def raises() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        Run(raises).start()
    assert caught.value is error


def test_a_business_error_caused_by_a_type_error_fails_the_run() -> None:
    async def raises() -> None:
        try:
            int([])  # type: ignore[call-overload]
        except TypeError as error:
            raise OutOfStock("x") from error

    run = Run(raises)
    run.start()
    assert run.failure.type == "OutOfStock"
    assert run.failure.cause is not None
    assert run.failure.cause.type == "TypeError"


def test_a_group_fails_the_run_with_all_members_visible() -> None:
    async def child(error: Exception) -> None:
        raise error

    async def group() -> None:
        async with asyncio.TaskGroup() as outer:
            outer.create_task(child(ValueError("one")))
            outer.create_task(nested())

    async def nested() -> None:
        async with asyncio.TaskGroup() as inner:
            inner.create_task(child(KeyError("two")))
            inner.create_task(child(OutOfStock("three")))

    run = Run(group)
    run.start()
    first, second = run.failure.extra
    assert (run.failure.type, first.message) == ("ExceptionGroup", "one")
    assert [member.type for member in second.extra] == ["KeyError", "OutOfStock"]


def test_a_group_that_holds_a_bug_blocks_the_run() -> None:
    async def child(error: Exception) -> None:
        raise error

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(child(ValueError("a failure")))
            tasks.create_task(child(AttributeError("a bug")))

    with pytest.raises(WorkflowCodeError, match="a bug"):
        Run(group).start()


def test_a_blocked_execution_is_of_no_more_use() -> None:
    async def raises() -> None:
        await asyncio.sleep(1)
        raise TypeError("x")

    run = Run(raises)
    run.start()
    with pytest.raises(WorkflowCodeError):
        run.fire(1)
    assert not run.closed
    with pytest.raises(WorkflowCodeError):
        run.instance.apply(ev.CancelRequested(reason=""), run.now)


@pytest.mark.parametrize("result", [object(), lambda: 1, {1, object()}])
def test_a_result_that_can_not_be_stored_fails_the_run_at_once(result: Any) -> None:
    async def returns() -> Any:
        return result

    run = Run(returns)
    run.start()
    assert run.failure.type == "PayloadError"
    assert "result" in run.failure.message


def test_an_input_that_can_not_be_read_blocks_the_run() -> None:
    async def takes(order: str, cents: int) -> None: ...

    run = Run(takes, "42", 999)

    async def takes_other(order: str, cents: dict[str, int]) -> None: ...

    from orchestrator.runtime.definition import define

    instance = new_instance(run.definition, "42", 999)
    instance = type(instance)(
        define(takes_other),
        instance._execution.info,
        instance._execution._input,
        converter=CONVERTER,
        activity_defaults=run.instance._execution.activities._defaults,
    )
    with pytest.raises(WorkflowCodeError, match="input can't be read: cents"):
        instance.apply(ev.RunStarted(), run.now)


def test_an_error_in_init_fails_or_blocks_like_one_in_run() -> None:
    class Fails:
        def __init__(self) -> None:
            raise ValueError("from init")

        @workflow.run
        async def run(self) -> None: ...

    class Blocks(Fails):
        def __init__(self) -> None:
            raise AttributeError("from init")

        @workflow.run
        async def run(self) -> None: ...

    run = Run(Fails)
    run.start()
    assert run.failure.message == "from init"
    with pytest.raises(WorkflowCodeError, match="from init"):
        Run(Blocks).start()


@pytest.mark.parametrize("body", [ev.RunTerminated(reason="stop"), ev.RunTimedOut()])
def test_ending_from_outside_runs_no_code(body: ev.EventBody) -> None:
    ran: list[str] = []

    async def waits() -> None:
        try:
            await act("work")
        finally:
            ran.append("code")

    run = Run(waits)
    run.start()
    assert run.apply(body) == []
    assert run.closed
    assert ran == []
    assert run.replayed().closed
    assert not run.instance.is_open(body)


def test_after_the_end_nothing_is_open() -> None:
    async def ends() -> None:
        act("left open")

    run = Run(ends)
    run.start()
    assert isinstance(run.commands[-1], cmd.CompleteRun)
    assert not run.instance.is_open(ev.ActivityCompleted(number=1, attempt=1, result=b""))
    with pytest.raises(NondeterminismError):
        run.instance.apply(ev.ActivityCompleted(number=1, attempt=1, result=b""), run.now)


def test_recursion_without_end_blocks() -> None:
    def deep(level: int) -> int:
        return deep(level + 1)

    async def recurses() -> int:
        return deep(0)

    with pytest.raises(WorkflowCodeError, match="RecursionError"):
        Run(recurses).start()


def test_sys_exit_in_workflow_code_blocks_the_run_and_not_the_worker() -> None:
    async def exits() -> None:
        raise SystemExit(3)

    async def in_a_task() -> None:
        await asyncio.gather(exits())

    for target in (exits, in_a_task):
        with pytest.raises(WorkflowCodeError, match="SystemExit"):
            Run(target).start()


def test_a_worker_that_ends_its_process_is_not_held_up() -> None:
    class WorkerShutdown(SystemExit):
        pass

    async def interrupted() -> None:
        raise WorkerShutdown

    with pytest.raises(WorkerShutdown):
        Run(interrupted).start()


def test_cancelled_error_out_of_a_handler_or_a_predicate_stays_in_the_workflow() -> None:
    class Odd:
        @workflow.run
        async def run(self) -> str:
            def predicate() -> bool:
                raise asyncio.CancelledError

            try:
                await workflow.wait_condition(predicate)
            except asyncio.CancelledError:
                await act("work")
            return "?"

        @workflow.signal
        def cancelled(self) -> None:
            raise asyncio.CancelledError

        @workflow.signal
        async def later(self) -> None:
            raise asyncio.CancelledError

    run = Run(Odd)
    run.start()
    run.signal("later")
    assert not run.closed
    run.signal("cancelled")
    assert run.failure.type == "CancelledError"
