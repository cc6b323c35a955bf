"""Activities as workflow code awaits them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.errors import ActivityError, ApplicationError, InvalidArgument, NondeterminismError, WorkflowCodeError
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from tests.unit.runtime.harness import Run, act


def test_a13_the_command_carries_number_name_queue_input_and_merged_options() -> None:
    async def calls() -> None:
        await workflow.execute_activity("unknown_here", "42", 999, queue="payments", start_to_close_timeout=7)

    run = Run(calls)
    (command,) = run.start()
    assert isinstance(command, cmd.ScheduleActivity)
    assert (command.number, command.name, command.queue) == (1, "unknown_here", "payments")
    assert command.options.start_to_close_timeout == timedelta(seconds=7)
    assert command.options.retry_policy is not None
    assert command.options.retry_policy.maximum_attempts == 10
    assert "test_activities.py" in command.line
    assert "calls" in command.line


def test_a_queue_is_on_the_command_only_when_workflow_code_wrote_it() -> None:
    async def calls() -> None:
        await workflow.execute_activity("unknown_here", args=["42"], kwargs={"cents": 9})

    (command,) = Run(calls).start()
    assert isinstance(command, cmd.ScheduleActivity)
    assert command.queue is None


@pytest.mark.parametrize(
    ("arguments", "options", "argument"),
    [
        (("unknown_here", 1), {"args": [1]}, "args"),
        (("unknown_here",), {"args": "42"}, "args"),
        (("unknown_here",), {"kwargs": [1]}, "kwargs"),
        (("",), {}, "activity"),
        ((7,), {}, "activity"),
        (("unknown_here",), {"colour": "red"}, "colour"),
        (("unknown_here",), {"start_to_close_timeout": "soon"}, "start_to_close_timeout"),
    ],
)
def test_a14_a_wrong_call_is_refused_where_it_is_written(arguments: Any, options: Any, argument: str) -> None:
    async def calls() -> str:
        try:
            await workflow.execute_activity(*arguments, **options)
        except InvalidArgument as error:
            return error.argument
        return "accepted"

    run = Run(calls)
    run.start()
    assert run.result == argument
    assert len(run.commands) == 1


def test_a_result_has_the_type_that_was_hinted() -> None:
    async def calls() -> str:
        value = await act("when", hint=timedelta)
        return f"{value.total_seconds():g}"

    run = Run(calls)
    run.start()
    run.complete(1, timedelta(minutes=2))
    assert run.result == "120"


def test_a_result_that_does_not_fit_blocks_and_can_not_be_caught() -> None:
    async def calls() -> str:
        try:
            await act("count", hint=int)
        except Exception:
            return "caught"
        return "?"

    run = Run(calls)
    run.start()
    with pytest.raises(WorkflowCodeError, match="result of activity 'count'"):
        run.complete(1, "many")


def test_a_failure_is_one_error_with_its_facts_and_cause() -> None:
    async def calls() -> list[Any]:
        try:
            await act("unknown_here")
        except ActivityError as error:
            cause = error.cause
            assert isinstance(cause, ApplicationError)
            return [
                error.activity,
                error.number,
                error.attempt,
                error.type,
                error.message,
                error.is_type("CardDeclined"),
                cause.type,
                str(error),
            ]
        return []

    run = Run(calls)
    run.start()
    run.fail(1, "CardDeclined", "no funds")
    assert run.result[:-1] == ["unknown_here", 1, 3, "CardDeclined", "no funds", True, "CardDeclined"]
    assert "no funds" in run.result[-1]


def test_the_text_of_a_failure_is_the_same_in_replay() -> None:
    async def reports() -> None:
        import traceback

        try:
            await act("unknown_here")
        except ActivityError as error:
            await act("report", str(error), repr(error), "".join(traceback.format_exception_only(error)))

    run = Run(reports)
    run.start()
    run.fail(1)
    run.complete(2)
    for _ in range(3):
        run.replayed()


def test_compensation_after_a_caught_failure_runs_in_order() -> None:
    async def saga() -> str:
        try:
            await act("ship")
        except ActivityError:
            for step in ("recall", "refund", "release"):
                await act(step)
            return "compensated"
        return "shipped"

    run = Run(saga)
    run.start()
    run.fail(1)
    for number in (2, 3, 4):
        run.complete(number)
    assert run.result == "compensated"
    assert [c.name for c in run.of(cmd.ScheduleActivity)] == ["ship", "recall", "refund", "release"]


def test_cancelling_the_future_cancels_the_activity_once() -> None:
    async def gives_up() -> str:
        work = act("work")
        await asyncio.sleep(1)
        for _ in range(5):
            work.cancel()
        try:
            await work
        except asyncio.CancelledError:
            return "given up"
        return "?"

    run = Run(gives_up)
    run.start()
    run.fire(2)
    assert [(c.number, c.target) for c in run.of(cmd.CancelActivity)] == [(3, 1)]
    assert run.result == "given up"


def test_an_activity_cancelled_in_its_own_activation_leaves_no_trace_but_uses_up_numbers() -> None:
    async def changes_its_mind() -> None:
        act("a").cancel()
        await act("b")

    run = Run(changes_its_mind)
    (command,) = run.start()
    assert isinstance(command, cmd.ScheduleActivity)
    assert (command.number, command.name) == (3, "b")
    run.replayed()


def test_a_late_outcome_of_a_cancelled_activity_is_not_open() -> None:
    async def gives_up() -> None:
        work = act("work")
        await asyncio.sleep(1)
        work.cancel()
        await asyncio.sleep(1)

    run = Run(gives_up)
    run.start()
    outcome = ev.ActivityCompleted(number=1, attempt=1, result=b"j1")
    assert run.instance.is_open(outcome)
    run.fire(2)
    assert not run.instance.is_open(outcome)
    with pytest.raises(NondeterminismError):
        run.instance.apply(outcome, run.now)


def test_cancelling_a_completed_activity_does_nothing() -> None:
    async def late() -> bool:
        work = act("work")
        await work
        return work.cancel()

    run = Run(late)
    run.start()
    run.complete(1)
    assert run.result is False
    assert run.of(cmd.CancelActivity) == []


def test_an_argument_that_can_not_be_stored_is_raised_at_the_call() -> None:
    async def bad() -> str:
        try:
            await workflow.execute_activity("x", object())
        except Exception as error:
            return type(error).__name__
        return "?"

    run = Run(bad)
    run.start()
    assert run.result == "PayloadError"
