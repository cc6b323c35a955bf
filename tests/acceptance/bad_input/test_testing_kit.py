"""Every call of the test kit, given what it refuses: a test is told at the line that is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import celery
import pytest

from orchestrator import Observer, activity
from orchestrator.client import WorkflowClient
from orchestrator.testing import ActivityEnvironment, WorkflowEnvironment
from tests.acceptance.bad_input import cases, flows
from tests.acceptance.bad_input.cases import Case, params, refuse, stored, variants
from tests.acceptance.bad_input.test_settings import NO_OBSERVERS, NOT_AN_APP

Env: Any = WorkflowEnvironment
"""What type checkers refuse already is among the cases."""
Alone: Any = ActivityEnvironment

NO_HANDLE: dict[str, Any] = {"an id": "order-1", "None": None, "a number": 5, "a hostile object": cases.Hostile()}
NO_ACTIVITY: dict[str, Any] = {
    **cases.NO_LABEL,
    "a function": flows.undecorated,
    "None": None,
    "a workflow": flows.echo,
}
NOT_CALLABLE: dict[str, Any] = {"None": None, "a number": 5, "text": "signal", "a hostile object": cases.Hostile()}


def stub(name: str) -> Any:
    return lambda env, value: env.stub(flows.charge, **{name: value})


KIT: dict[str, list[tuple[str, Case]]] = {
    "WorkflowEnvironment": [
        *variants("app", lambda _, value: Env(value), NOT_AN_APP, without=["None"]),
        *variants("start_time", lambda _, value: Env(start_time=value), cases.NOT_AN_INSTANT),
        *variants("observers", lambda _, value: Env(observers=value), NO_OBSERVERS),
        *variants("step_limit", lambda _, value: Env(step_limit=value), cases.NOT_AN_INT, {"zero": 0, "negative": -1}),
    ],
    "run": [
        *variants("timeout", lambda env, value: env.run(flows.waiter, timeout=value), cases.NOT_A_DURATION, cases.NEGATIVE),
        *variants("id", lambda env, value: env.run(flows.waiter, id=value), cases.NO_LABEL),
        *variants("run", lambda env, value: env.run(value), cases.NO_LABEL, {"a function": flows.undecorated}),
        *variants("times", lambda env, value: env.run(flows.echo, "a", value), cases.NOT_AN_INT),
    ],
    "result": [
        *variants("handle", lambda env, value: env.result(value), NO_HANDLE),
        *variants("timeout", lambda env, value: env.result(env.get_handle("order-1"), value), cases.NOT_A_DURATION, cases.NEGATIVE),
    ],
    "history": [*variants("handle", lambda env, value: env.history(value), NO_HANDLE)],
    "advance": [*variants("duration", lambda env, value: env.advance(value), cases.NOT_A_DURATION, cases.NEGATIVE, {"None": None})],
    "sleep": [*variants("duration", lambda env, value: env.sleep(value), cases.NOT_A_DURATION, cases.NEGATIVE)],
    "call_later": [
        *variants("delay", lambda env, value: env.call_later(value, print), cases.NOT_A_DURATION, cases.NEGATIVE, {"None": None}),
        *variants("action", lambda env, value: env.call_later(1, value), NOT_CALLABLE),
    ],
    "stub": [
        *variants("activity", lambda env, value: env.stub(value, returns=1), NO_ACTIVITY),
        *variants("returns", stub("returns"), cases.NOT_TEXT, {"None": None, "a lone surrogate": "\ud800"}),
        *variants("returns", lambda env, value: env.stub(flows.keep, returns=value), cases.NOT_STORABLE),
        *variants("raises", stub("raises"), {"text": "no", "None": None, "a class": int, "the end of it all": KeyboardInterrupt, "a hostile object": cases.Hostile()}),
        *variants("side_effect", stub("side_effect"), {"a number": 5, "text": "no", "bytes": b"no", "a dict": {}, "None": None}),
        *variants("takes", lambda env, value: env.stub(flows.charge, returns="1", takes=value), cases.NOT_A_DURATION, cases.NEGATIVE, {"None": None}),
        *variants("stub", lambda env, value: env.stub(flows.charge, **value), {"nothing": {}, "two of them": {"returns": "1", "raises": ValueError}}),
    ],
    "calls": [*variants("activity", lambda env, value: env.calls(value), NO_ACTIVITY, {"a name nobody has": "bad.chrage"}, without=["None"])],
    "stand_in_for": [*variants("client", lambda env, value: env.stand_in_for(value).__enter__(), NO_HANDLE)],
    "ActivityEnvironment": [
        *variants("info", lambda _, value: Alone(info=value), NO_HANDLE),
        *variants("attempt", lambda _, value: Alone(attempt=value), cases.NOT_AN_INT, {"zero": 0, "negative": -1, "None": None}),
        *variants("heartbeat_details", lambda _, value: Alone(heartbeat_details=value), {
            "text": "50 %", "a number": 5, "a dict": {}, "a hostile object": cases.Hostile()}),
        *variants("details", lambda _, value: Alone(heartbeat_details=[value]), cases.NOT_STORABLE, without=["over the limit"]),
        *variants("on_heartbeat", lambda _, value: Alone(on_heartbeat=value), NOT_CALLABLE, without=["None"]),
    ],
    "ActivityEnvironment.cancel": [*variants("reason", lambda _, value: Alone().cancel(value), cases.NO_REASON)],
    "ActivityEnvironment.run": [
        *variants("activity", lambda _, value: Alone().run(value), {
            "a name": "bad.charge", "None": None, "a class": flows.Order, "a hostile object": cases.Hostile()}),
        *variants("order_id", lambda _, value: Alone().run(flows.charge, value), cases.NOT_TEXT, {"a lone surrogate": "\ud800"}),
        *variants("cents", lambda _, value: Alone().run(flows.charge, "42", value), cases.NOT_AN_INT),
        *variants("arguments", lambda _, value: Alone().run(flows.charge, *value), {"too many": ("42", 1, 2)}),
        ("order_id: missing", Case("order_id", lambda _: Alone().run(flows.charge))),
        *variants("result", lambda _, value: Alone().run(lambda: value), cases.NOT_STORABLE),
    ],
    "activity.heartbeat": [
        *variants("details", lambda _, value: Alone().run(lambda: activity.heartbeat(value)), cases.NOT_STORABLE, without=["over the limit"]),
    ],
    "activity.info().heartbeat_details": [
        *variants("hints", lambda _, value: Alone(heartbeat_details=[1]).run(lambda: activity.info().heartbeat_details(value)), cases.NOT_A_TYPE),
        *variants("details", lambda _, value: Alone(heartbeat_details=["x"]).run(lambda: activity.info().heartbeat_details(value)), {"another": int}),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def env() -> Iterator[WorkflowEnvironment]:
    with WorkflowEnvironment() as made:
        made.start(flows.waiter, id="order-1")
        yield made


@pytest.mark.parametrize("case", params(KIT))
def test_a_bad_argument_is_named_and_nothing_happens(env: WorkflowEnvironment, case: Case) -> None:
    before, now, stubs = stored(env._built.db), env.now, dict(env._activities.stubs)
    refuse(case.argument, lambda: case.call(env))
    assert (stored(env._built.db), env.now, env._activities.stubs) == (before, now, stubs)


def test_no_public_call_is_left_out() -> None:
    def methods(owner: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(owner, inspect.isfunction) if not name.startswith("_")}

    ours = methods(WorkflowEnvironment) - methods(WorkflowClient)
    assert ours - {"close"} == {name for name in KIT if name in ours} | {"arun", "aresult", "aadvance"}
    alone = {f"ActivityEnvironment.{name}" for name in methods(ActivityEnvironment)}
    assert alone - {"ActivityEnvironment.arun", "ActivityEnvironment.shut_down_worker"} <= set(KIT)


def test_a_proxy_of_an_app_is_an_app_and_no_observers_are_fine() -> None:
    with WorkflowEnvironment(celery.current_app, observers=[Observer()]) as made:
        assert made.run(flows.echo, "a", 2) == "aa"
