"""Bad input in workflow code: an error at the call, which fails the run or blocks it by rule, and never a hang."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import celery
import pytest

from orchestrator import WorkflowBlocked, WorkflowFailed, activity, workflow
from orchestrator.errors import InvalidArgument
from orchestrator.model.records import RunStatus
from orchestrator.testing import WorkflowEnvironment
from tests.acceptance.bad_input import cases, flows
from tests.acceptance.bad_input.cases import Case, check_refusal, stored, variants
from tests.acceptance.bad_input.test_definitions import legacy

untyped: Any = workflow
"""What type checkers refuse already is among the cases."""


def anything(value: Any) -> Any:
    return value


async def coroutine_function() -> bool:
    return True


def schedule(**options: Any) -> Any:
    return workflow.execute_activity(flows.charge, "42", **options)


def signature(**options: Any) -> Any:
    return workflow.execute_activity(legacy.s("a").set(**options))


NOT_CALLABLE: dict[str, Any] = {"None": None, "a number": 5, "a bool": True, "text": "ready"}
NEVER: dict[str, Any] = {"minus infinity": -math.inf}

CALLS: dict[str, list[tuple[str, Case]]] = {
    "sleep": [*variants("duration", lambda _, value: untyped.sleep(value), cases.NOT_A_DURATION, NEVER, {"None": None})],
    "sleep_until": [*variants("instant", lambda _, value: untyped.sleep_until(value), cases.NOT_AN_INSTANT)],
    "asyncio.sleep": [*variants("delay", lambda _, value: asyncio.sleep(value), {"NaN": math.nan, "infinity": math.inf, "too long": 1e12})],
    "wait_condition": [
        *variants("predicate", lambda _, value: untyped.wait_condition(value), NOT_CALLABLE, {"an async def": coroutine_function}),
        *variants("timeout", lambda _, value: untyped.wait_condition(lambda: False, timeout=value), cases.NOT_A_DURATION, NEVER),
    ],
    "wait_for_signal": [
        *variants("name", lambda _, value: untyped.wait_for_signal(value), cases.NO_LABEL, {"None": None}),
        *variants("type", lambda _, value: untyped.wait_for_signal("go", value), cases.NOT_A_TYPE),
        *variants("timeout", lambda _, value: untyped.wait_for_signal("go", timeout=value), cases.NOT_A_DURATION, NEVER),
    ],
    "side_effect": [
        *variants("function", lambda _, value: untyped.side_effect(value), NOT_CALLABLE, {"an async def": coroutine_function}),
        *variants("name", lambda _, value: untyped.side_effect(lambda: 1, name=value), cases.NO_LABEL, {"None": None}, without=["empty"]),
        *variants("type", lambda _, value: untyped.side_effect(lambda: 1, type=value), cases.NOT_A_TYPE),
        *variants("setting", lambda _, value: workflow.side_effect(lambda: value, name="setting"), cases.NOT_STORABLE),
        *variants("setting", lambda _, value: workflow.side_effect(lambda: value, name="setting", type=int), cases.NOT_AN_INT),
    ],
    "execute_activity": [
        *variants("activity", lambda _, value: workflow.execute_activity(value), cases.NO_LABEL, {
            "None": None, "a function": flows.undecorated, "a chain": legacy.s("a") | legacy.s(), "a group": celery.group(legacy.s("a"))}),
        *variants("args", lambda _, value: workflow.execute_activity(flows.charge, args=value), {"text": "42", "a dict": {}, "a number": 5}),
        ("args: twice", Case("args", lambda _: workflow.execute_activity(flows.charge, "42", args=["42"]))),
        *variants("kwargs", lambda _, value: workflow.execute_activity(flows.charge, "42", kwargs=value), {
            "text": "42", "a list": ["42"], "keys that are no text": {5: 5}}),
        *variants("queue", lambda _, value: schedule(queue=value), cases.NO_LABEL),
        *variants("priority", lambda _, value: schedule(priority=value), cases.NOT_AN_INT, {"ten": 10}),
        *variants("retry_policy", lambda _, value: schedule(retry_policy=value), {"a dict": {}, "a number": 3}),
        *variants("heartbeat_timeout", lambda _, value: schedule(heartbeat_timeout=value), cases.NOT_A_DURATION, cases.NEGATIVE, cases.ZERO),
        *variants("timeout", lambda _, value: schedule(timeout=value), {"no such option": 5}),
        *variants("cents", lambda _, value: workflow.execute_activity("bad.charge", "42", value), cases.NOT_AN_INT, {"None": None}),
        *variants("order_id", lambda _, value: workflow.execute_activity("bad.charge", *value), {"missing": ()}),
        *variants("card", lambda _, value: workflow.execute_activity("bad.charge", "42", kwargs={"card": value}), {"unknown": "1"}),
    ],
    "execute_activity(signature)": [
        *variants("queue", lambda _, value: signature(queue=value), cases.NO_LABEL),
        *variants("priority", lambda _, value: signature(priority=value), cases.NOT_AN_INT),
        *variants("time_limit", lambda _, value: signature(time_limit=value), cases.NOT_A_DURATION, cases.NEGATIVE, cases.ZERO),
        *variants("countdown", lambda _, value: signature(countdown=value), {"not kept": 5}),
        *variants("link", lambda _, value: signature(link=value), {"not kept": legacy.s()}),
    ],
    "execute": [
        *variants("order_id", lambda _, value: flows.charge.execute(value), cases.NOT_TEXT, {"a lone surrogate": "\ud800"}),
        *variants("cents", lambda _, value: flows.charge.execute("42", cents=value), cases.NOT_AN_INT),
        *variants("value", lambda _, value: flows.keep.execute(value), cases.NOT_STORABLE, without=["over the limit"]),
        *variants("arguments", lambda _, value: flows.keep.execute(*value), {"over the limit": ("x" * 2_100_000,), "too many": (1, 2)}),
        *variants("value", lambda _, value: activity.of(legacy).execute(*value), {"an object": (object(),), "missing": ()}),
    ],
    "start": [
        *variants("order_id", lambda _, value: flows.charge.start(value), cases.NOT_TEXT),
        *variants("value", lambda _, value: flows.keep.with_options(queue="slow").start(value), cases.NOT_STORABLE, without=["over the limit"]),
    ],
}  # fmt: skip

present: dict[str, Callable[[], Any]] = {}
"""What the workflow under test calls."""


async def _call(call: Callable[[], Any]) -> Any:
    made = call()
    return await made if inspect.isawaitable(made) else made


@workflow.defn(name="bad.catching")
async def catching(call: str) -> list[tuple[str, str]]:
    """Makes all calls of a table, and goes on after each."""
    caught = []
    for name, case in CALLS[call]:
        try:
            await _call(lambda case=case: case.call(None))  # type: ignore[misc]
        except InvalidArgument as error:
            caught.append((error.argument, error.reason))
        else:
            raise AssertionError(f"{call} took {name}")
    # So that all of it is replayed.
    await workflow.sleep(1)
    return caught


@workflow.defn(name="bad.passing_on")
async def passing_on() -> None:
    await _call(present["call"])


@workflow.defn(name="bad.declaring", signals={"go": str})
async def declaring() -> None:
    await _call(present["call"])


@pytest.fixture(scope="module")
def env() -> Iterator[WorkflowEnvironment]:
    with WorkflowEnvironment() as made:
        yield made


def kinds(env: WorkflowEnvironment, workflow_id: str) -> list[str]:
    return [event.kind for event in env.history(env.get_handle(workflow_id))]


@pytest.mark.parametrize("call", CALLS)
def test_each_error_can_be_caught_at_the_call_and_replays(env: WorkflowEnvironment, call: str) -> None:
    before = stored(env._built.db)
    caught = env.run(catching, call, id=call)
    for (name, case), (argument, reason) in zip(CALLS[call], caught, strict=True):
        check_refusal(InvalidArgument(argument, reason), case.argument, name)
    recorded = [kind for kind in kinds(env, call) if kind != "SideEffectRecorded"]
    assert recorded == ["RunStarted", "TimerStarted", "TimerFired", "RunCompleted"]
    assert stored(env._built.db)["orchestrator_activities"] == before["orchestrator_activities"]


@pytest.mark.parametrize("call", CALLS)
def test_the_error_fails_the_run_when_it_is_not_caught(env: WorkflowEnvironment, call: str) -> None:
    _, case = CALLS[call][0]
    present["call"] = lambda: case.call(None)
    before = stored(env._built.db)
    with pytest.raises(WorkflowFailed, match=f"(InvalidArgument|PayloadError): {case.argument}: "):
        env.run(passing_on, id=f"failing {call}")
    assert kinds(env, f"failing {call}") == ["RunStarted", "RunFailed"]
    after = stored(env._built.db)
    assert [name for name in after if after[name] != before[name]] == ["orchestrator_runs", "orchestrator_history"]


def test_no_call_of_workflow_code_is_left_out() -> None:
    decorators, without_arguments = (
        {"defn", "run", "signal", "query"},
        {"now", "uuid4", "random", "info", "in_workflow"},
    )
    not_called = {"WorkflowInfo", "logger"}
    tested = {name for name in CALLS if name in workflow.__all__}
    assert set(workflow.__all__) == tested | decorators | without_arguments | not_called


BLOCKING: dict[str, tuple[str, Callable[[], Any]]] = {
    "text for asyncio's own sleep": ("TypeError", lambda: asyncio.sleep(anything("5"))),
    "a predicate with an argument": ("TypeError", lambda: untyped.wait_condition(lambda x: x)),
    "a signal that the type does not declare": ("declares no signal 'stop'", lambda: workflow.wait_for_signal("stop")),
    "a side effect that raises": ("ZeroDivisionError", lambda: workflow.side_effect(lambda: 1 // 0)),
    "a call without its argument": ("TypeError", untyped.sleep),
    "an unknown name": ("AttributeError", lambda: untyped.slep(5)),
}


@pytest.mark.parametrize("name", BLOCKING)
def test_what_a_deploy_can_cure_blocks_the_run(env: WorkflowEnvironment, name: str) -> None:
    message, present["call"] = BLOCKING[name]
    before = stored(env._built.db)
    with pytest.raises(WorkflowBlocked, match=message):
        env.run(declaring, id=name)
    described = env.get_handle(name).describe()
    assert (described.status, described.attention) == (RunStatus.PENDING, "blocked")
    assert message in (described.blocked_reason or "")
    after = stored(env._built.db)
    assert [name for name in after if after[name] != before[name]] == ["orchestrator_runs"]
    env.get_handle(name).terminate()


def test_a_signal_that_does_not_fit_the_wait_blocks_the_run(env: WorkflowEnvironment) -> None:
    present["call"] = lambda: workflow.wait_for_signal("amount", int)
    handle = env.start(passing_on, id="unreadable")
    handle.signal("amount", "a lot")
    with pytest.raises(WorkflowBlocked, match="the value of signal 'amount' can't be read: .*valid integer"):
        handle.result()
    handle.terminate()


@workflow.defn(name="bad.returning")
async def returning() -> Any:
    return present["call"]()


@activity.defn(name="bad.yielding")
def yielding() -> Any:
    return present["call"]()


@workflow.defn(name="bad.calling")
async def calling() -> Any:
    return await yielding.execute()


@pytest.mark.parametrize("value", cases.NOT_STORABLE.values(), ids=list(cases.NOT_STORABLE))
def test_a_result_that_can_not_be_stored_fails_what_returned_it(env: WorkflowEnvironment, value: Any) -> None:
    present["call"] = lambda: value
    for target in (returning, calling):
        with pytest.raises(WorkflowFailed, match="PayloadError: result"):
            env.run(target)
    assert len(env.calls(yielding)) > 0
