"""Calls made where they mean nothing: the client's in workflow code, workflow code's outside, activities' anywhere."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator import OrchestratorError, WorkflowFailed, activity, workflow
from orchestrator.errors import NotInActivity, NotInWorkflow
from orchestrator.testing import ActivityEnvironment, WorkflowEnvironment
from tests.acceptance.bad_input import flows
from tests.acceptance.bad_input.cases import stored
from tests.acceptance.bad_input.test_client import CLIENT, HANDLE
from tests.acceptance.bad_input.test_definitions import legacy

CLIENT_CALLS: dict[str, Callable[[Any], Any]] = {
    "start": lambda owner: owner.start(flows.echo, "a"),
    "list": lambda owner: owner.list(),
    "flush": lambda owner: owner.flush(),
    "get_handle": lambda owner: owner.get_handle("other"),
    "get_handle_for": lambda owner: owner.get_handle_for(flows.echo, "other"),
}
HANDLE_CALLS: dict[str, Callable[[Any], Any]] = {
    "signal": lambda owner: owner.signal("address", "Main St"),
    "query": lambda owner: owner.query("pending"),
    "result": lambda owner: owner.result(timeout=0),
    "cancel": lambda owner: owner.cancel(),
    "terminate": lambda owner: owner.terminate(),
    "describe": lambda owner: owner.describe(),
    "history": lambda owner: owner.history(),
}
WITHOUT_TWIN = {"get_handle", "get_handle_for"}
NAMES = [*CLIENT_CALLS, *HANDLE_CALLS]

reach: dict[str, Any] = {}
"""What workflow code under test reaches for, although it should not."""


class Twins:
    """Calls the async twin of each method."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner, f"a{name}")


@workflow.defn(name="bad.reaching_out")
async def reaching_out(name: str, twin: bool) -> None:
    owner = reach["client" if name in CLIENT_CALLS else "handle"]
    made = {**CLIENT_CALLS, **HANDLE_CALLS}[name](Twins(owner) if twin else owner)
    if inspect.isawaitable(made):
        await made


@workflow.defn(name="bad.Asking")
class Asking:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.query
    def other(self) -> str:
        return str(reach["handle"].describe())

    @workflow.signal
    def reach_out(self) -> None:
        reach["handle"].terminate()


@pytest.fixture(scope="module")
def env() -> Iterator[WorkflowEnvironment]:
    with WorkflowEnvironment() as made:
        reach["client"], reach["handle"] = made, made.start(flows.waiter, id="other")
        yield made


def test_every_call_of_the_client_is_tried() -> None:
    assert set(NAMES) - WITHOUT_TWIN == {*CLIENT, *HANDLE, "describe", "flush"}


@pytest.mark.parametrize("twin", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("name", NAMES)
def test_a_client_s_call_in_workflow_code_fails_the_run_and_stores_nothing_else(
    env: WorkflowEnvironment, name: str, twin: bool
) -> None:
    if twin and name in WITHOUT_TWIN:
        return
    before = stored(env._built.db)
    with pytest.raises(WorkflowFailed, match=f"InsideWorkflow: .*{name}.*activity") as caught:
        env.run(reaching_out, name, twin)
    assert caught.value.cause is not None
    after = stored(env._built.db)
    assert after == {**before, "orchestrator_runs": before["orchestrator_runs"] + 1,
                     "orchestrator_history": before["orchestrator_history"] + 2}  # fmt: skip


def test_a_client_s_call_in_a_handler_is_refused_too(env: WorkflowEnvironment) -> None:
    handle = env.start(Asking.run)
    with pytest.raises(OrchestratorError, match="InsideWorkflow: handle.describe"):
        handle.query(Asking.other)
    handle.signal(Asking.reach_out)
    with pytest.raises(WorkflowFailed, match="InsideWorkflow: handle.terminate"):
        handle.result()
    assert env.get_handle("other").describe().is_open


# --- outside of workflow code -----------------------------------------------------------------------

plain_task: activity.TaskReference[[str], str] = activity.of(legacy)

AWAITED: dict[str, Callable[[], Any]] = {
    "workflow.sleep": lambda: workflow.sleep(1),
    "workflow.sleep_until": lambda: workflow.sleep_until(datetime.now(UTC)),
    "workflow.wait_condition": lambda: workflow.wait_condition(lambda: True),
    "workflow.wait_for_signal": lambda: workflow.wait_for_signal("go"),
    "workflow.execute_activity": lambda: workflow.execute_activity("bad.charge", "42"),
    "execute": lambda: flows.charge.execute("42"),
    "execute with options": lambda: flows.charge.with_options(queue="slow").execute("42"),
    "execute of a plain task": lambda: plain_task.execute("a"),
}
DIRECT: dict[str, Callable[[], Any]] = {
    "workflow.now": workflow.now,
    "workflow.uuid4": workflow.uuid4,
    "workflow.random": workflow.random,
    "workflow.info": workflow.info,
    "workflow.side_effect": lambda: workflow.side_effect(lambda: 1),
    "start": lambda: flows.charge.start("42"),
}


def make(name: str) -> Any:
    """Makes one of the calls to its end."""

    async def awaited() -> Any:
        return await AWAITED[name]()

    return DIRECT[name]() if name in DIRECT else asyncio.run(awaited())


def test_every_call_of_workflow_code_is_tried() -> None:
    elsewhere = {"WorkflowInfo", "defn", "in_workflow", "logger", "query", "run", "signal"}
    tried = {name.removeprefix("workflow.") for name in [*AWAITED, *DIRECT] if name.startswith("workflow.")}
    assert tried == set(workflow.__all__) - elsewhere


@pytest.mark.parametrize("name", [*AWAITED, *DIRECT])
def test_workflow_code_s_call_outside_is_refused_and_says_what_to_do(name: str) -> None:
    with pytest.raises(NotInWorkflow, match=r"WorkflowEnvironment") as caught:
        make(name)
    assert isinstance(caught.value, OrchestratorError)
    assert str(caught.value).startswith((f"{name}()", "Calling the activity 'bad."))
    assert not workflow.in_workflow()


@pytest.mark.parametrize("name", [*AWAITED, *DIRECT])
def test_it_is_refused_in_an_activity_as_well(name: str) -> None:
    with pytest.raises(NotInWorkflow):
        ActivityEnvironment().run(lambda: make(name))


@pytest.mark.parametrize(
    "call", [activity.info, activity.heartbeat, activity.is_cancelled], ids=["info", "heartbeat", "is_cancelled"]
)
def test_an_activity_s_call_outside_of_one_names_the_test_environment(call: Callable[[], Any]) -> None:
    with pytest.raises(NotInActivity, match="ActivityEnvironment"):
        call()
    assert not activity.in_workflow()
    assert not activity.is_worker_shutting_down()


def test_an_activity_s_calls_in_workflow_code_fail_the_run(env: WorkflowEnvironment) -> None:
    @workflow.defn(name="bad.beating")
    async def beating() -> None:
        activity.heartbeat(1)

    with pytest.raises(WorkflowFailed, match="NotInActivity"):
        env.run(beating)
