"""Workflow code calls an activity with `execute` or `start`; the other ways would repeat its effect."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery.contrib.testing.app import TestApp as UnitApp

from orchestrator import WorkflowFailed, activity, workflow
from orchestrator.activity.definition import registry
from orchestrator.testing import WorkflowEnvironment

effects: list[str] = []


@pytest.fixture(autouse=True)
def own_names() -> Iterator[None]:
    """Activities of these tests are forgotten after each, and what they did."""
    effects.clear()
    with registry.scope():
        yield


@activity.defn(name="unit.inside.charge")
def charge(order_id: str) -> str:
    effects.append(order_id)
    return f"receipt of {order_id}"


@activity.defn(name="unit.inside.ship")
async def ship(order_id: str) -> str:
    effects.append(order_id)
    return f"parcel of {order_id}"


CALLS: dict[str, Callable[[], Any]] = {
    "charge()": lambda: charge("42"),
    "charge.delay()": lambda: charge.delay("42"),
    "charge.apply_async()": lambda: charge.apply_async(("42",)),
    "charge.s().delay()": lambda: charge.s("42").delay(),
    "ship()": lambda: ship("42"),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_activity_that_workflow_code_calls_directly_or_sends_is_refused(call: str):
    UnitApp(set_as_current=True)

    @workflow.defn(name="unit.inside.wrong")
    async def wrong() -> None:
        CALLS[call]()

    message = r"InsideWorkflow: .*'unit\.inside\.\w+' is (called|sent).*execute"
    with WorkflowEnvironment() as env, pytest.raises(WorkflowFailed, match=message):
        env.run(wrong)
    assert effects == []


def test_an_activity_may_call_another_one():
    @activity.defn(name="unit.inside.both")
    def both(order_id: str) -> str:
        return f"first {charge(order_id)}"

    @workflow.defn(name="unit.inside.right")
    async def right() -> str:
        return await both.execute("42")

    with WorkflowEnvironment() as env:
        assert env.run(right) == "first receipt of 42"
    assert effects == ["42"]
