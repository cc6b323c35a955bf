"""What differs from run to run and is the same in replay: time, randomness, side effects, logs, facts."""

from __future__ import annotations

import asyncio
import logging
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.errors import InvalidArgument, NondeterminismError, WorkflowCodeError
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from tests.unit.runtime.harness import CONVERTER, START, Run, act, new_instance


def test_now_is_the_time_of_the_event_being_applied() -> None:
    async def times() -> list[str]:
        seen = [workflow.now()]
        await asyncio.sleep(1)
        seen.append(workflow.now())
        await asyncio.sleep(0)
        seen.append(workflow.now())
        assert all(moment.tzinfo is UTC for moment in seen)
        return [moment.isoformat() for moment in seen]

    run = Run(times)
    run.start()
    run.fire(1, after=0.25)
    base = datetime.fromtimestamp(START / 1_000_000, UTC)
    later = (base + timedelta(seconds=1.25)).isoformat()
    assert run.result == [base.isoformat(), later, later]


def test_time_never_goes_back() -> None:
    async def times() -> bool:
        before = workflow.now()
        await asyncio.sleep(1)
        return workflow.now() >= before

    run = Run(times)
    run.start()
    (last,) = run.instance.apply(ev.TimerFired(number=1), START - 50_000_000)
    assert isinstance(last, cmd.CompleteRun)
    assert last.result == b"jtrue"


def test_random_values_are_the_same_in_replay_and_other_ones_in_another_run() -> None:
    async def draws() -> list[Any]:
        first = [str(workflow.uuid4()), workflow.random().random()]
        await act("echo", first)
        return [*first, str(workflow.uuid4()), workflow.random().randint(0, 10**9)]

    def results(run_id: str) -> Any:
        run = Run(draws, run_id=run_id)
        run.start()
        run.restart()
        run.complete(1)
        run.replayed()
        return run.result

    one, again, other = results("run-1"), results("run-1"), results("run-2")
    assert one == again
    assert not set(map(str, one)) & set(map(str, other))
    assert one[0] != one[2]
    assert uuid.UUID(one[0]).version == 4


@pytest.mark.parametrize("value", [None, 0, "", [], {"a": [1, None]}, "text"])
def test_a18_a_side_effect_is_recorded_once_and_not_called_in_replay(value: Any) -> None:
    calls: list[int] = []

    def effect() -> Any:
        calls.append(1)
        return value

    async def records() -> Any:
        got = workflow.side_effect(effect, name="setting")
        await asyncio.sleep(1)
        return [got, workflow.side_effect(effect)]

    run = Run(records)
    first, _ = run.start()
    assert isinstance(first, cmd.RecordSideEffect)
    assert (first.number, first.name) == (1, "setting")
    run.restart()
    run.fire(2)
    run.replayed()
    assert len(calls) == 2
    assert run.result == [value, value]


def test_a_side_effect_gives_what_was_stored_also_live() -> None:
    def price() -> Decimal:
        return Decimal("1.10")

    async def records() -> list[str]:
        typed = workflow.side_effect(price)
        plain = workflow.side_effect(lambda: (1, 2))
        given = workflow.side_effect(lambda: Decimal("2.50"), type=Decimal)
        return [repr(typed), repr(plain), repr(given)]

    run = Run(records)
    run.start()
    assert run.result == ["Decimal('1.10')", "[1, 2]", "Decimal('2.50')"]


def test_a_side_effect_that_raises_blocks_and_is_tried_again() -> None:
    attempts = [ValueError("not yet"), None]

    def flaky() -> int:
        error = attempts.pop(0)
        if error is not None:
            raise error
        return 7

    async def records() -> Any:
        try:
            return workflow.side_effect(flaky, name="flaky")
        except Exception:
            return "caught"

    with pytest.raises(WorkflowCodeError, match="side effect 'flaky' raised ValueError"):
        Run(records).start()
    run = Run(records)
    run.start()
    assert run.result == 7


def test_a_side_effect_may_not_use_the_workflow_and_not_be_async() -> None:
    async def later() -> int:
        return 1

    async def nested() -> None:
        workflow.side_effect(lambda: act("x"))

    async def asynchronous() -> str:
        try:
            workflow.side_effect(later)
        except InvalidArgument as error:
            return error.argument
        return "?"

    with pytest.raises(WorkflowCodeError, match="only reads"):
        Run(nested).start()
    run = Run(asynchronous)
    run.start()
    assert run.result == "function"


def test_a_value_that_can_not_be_stored_is_raised_at_the_call() -> None:
    async def records() -> str:
        try:
            workflow.side_effect(object)
        except Exception as error:
            return type(error).__name__
        return "?"

    run = Run(records)
    run.start()
    assert run.result == "PayloadError"


def test_a_side_effect_that_history_does_not_hold_is_nondeterminism_and_not_called() -> None:
    calls: list[int] = []

    async def without() -> None:
        await asyncio.sleep(1)

    async def with_one() -> None:
        try:
            workflow.side_effect(lambda: calls.append(1), name="new")
        except Exception:
            calls.append(2)
        await asyncio.sleep(1)

    run = Run(without)
    run.start()
    with pytest.raises(NondeterminismError, match="side effect 'new'.*command 1"):
        run.replayed(with_one)
    assert calls == []


def test_the_logger_writes_each_line_once_with_ids_and_the_authors_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def steps() -> None:
        for index in range(10):
            workflow.logger.info("step %s", index, extra={"order": "42"})
            await asyncio.sleep(1)

    run = Run(steps)
    run.start()
    for number in range(1, 11):
        run.restart()
        run.fire(number)
    lines = [record for record in caplog.records if record.name == "orchestrator.workflow"]
    assert [record.getMessage() for record in lines] == [f"step {index}" for index in range(10)]
    record = lines[0]
    assert (record.workflow_id, record.run_id, record.workflow_type, record.order) == ("wf-1", "run-1", "steps", "42")  # type: ignore[attr-defined]
    assert (record.funcName, record.lineno) == ("steps", steps.__code__.co_firstlineno + 2)


def test_the_logger_works_outside_of_workflows(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    workflow.logger.info("from a helper")
    assert caplog.messages == ["from a helper"]


def test_info_tells_about_the_run() -> None:
    async def facts() -> list[str]:
        info = workflow.info()
        return [info.workflow_id, info.run_id, info.workflow_type, info.queue, info.started_at.isoformat()]

    run = Run(facts)
    run.start()
    assert run.result[:4] == ["wf-1", "run-1", "facts", "orders"]
    assert run.result[4] == datetime.fromtimestamp(START / 1_000_000, UTC).isoformat()


def test_info_shows_the_memo_of_the_start() -> None:
    async def facts() -> Any:
        return workflow.info().memo

    run = Run(facts)
    instance = new_instance(run.definition, memo={"customer": [1, None]})
    (last,) = instance.apply(ev.RunStarted(), START)
    assert isinstance(last, cmd.CompleteRun)
    assert CONVERTER.decode(last.result) == {"customer": [1, None]}
