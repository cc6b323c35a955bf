"""Workflow code reaches outside through activities only: every call of the client is refused there."""

import pytest

from orchestrator import workflow
from orchestrator.client import WorkflowClient
from orchestrator.errors import InsideWorkflow
from tests.conformance.engine.world import World
from tests.unit.client.flows import echo

CALLS = {
    "start": lambda durable, handle: durable.start(echo, "a"),
    "get_handle": lambda durable, handle: durable.get_handle("w"),
    "get_handle_for": lambda durable, handle: durable.get_handle_for(echo, "w"),
    "list": lambda durable, handle: durable.list(),
    "result": lambda durable, handle: handle.result(),
    "signal": lambda durable, handle: handle.signal("go"),
    "query": lambda durable, handle: handle.query("state"),
    "cancel": lambda durable, handle: handle.cancel(),
    "terminate": lambda durable, handle: handle.terminate(),
    "describe": lambda durable, handle: handle.describe(),
    "history": lambda durable, handle: handle.history(),
    "astart": lambda durable, handle: durable.astart(echo, "a"),
    "aresult": lambda durable, handle: handle.aresult(),
    "asignal": lambda durable, handle: handle.asignal("go"),
    "aquery": lambda durable, handle: handle.aquery("state"),
    "alist": lambda durable, handle: durable.alist(),
}
outside: dict[str, tuple[WorkflowClient, object]] = {}


@workflow.defn(name="client.reaching_out")
async def reaching_out(name: str) -> str:
    durable, handle = outside["it"]
    try:
        answer = CALLS[name](durable, handle)
        if name.startswith("a"):
            await answer
    except InsideWorkflow as error:
        return str(error)
    return "it was let through"


@pytest.mark.parametrize("name", CALLS)
def test_a_client_call_in_workflow_code_is_refused_with_the_substitute(
    durable: WorkflowClient, world: World, name: str
):
    outside["it"] = durable, durable.start(echo, "a", id="other")
    refused = durable.start(reaching_out, name).result(timeout=5)
    assert "reaches outside the workflow" in refused
    assert "activity" in refused
    assert len(durable.list().items) == 2
