"""Starting workflows: what is accepted, what answers, and what is refused before anything is stored."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.client import WorkflowClient
from orchestrator.errors import InvalidArgument, PayloadError, WorkflowAlreadyStarted
from orchestrator.model.records import RunStatus
from tests.conformance.engine.world import World
from tests.unit.client.flows import Approval, Order, anything, echo, order


def test_a_start_answers_with_a_handle_and_the_result_has_its_type(durable: WorkflowClient):
    handle = durable.start(order, Order("1", Decimal("2.50")), id="order-1")
    assert (handle.id, handle.created) == ("order-1", True)
    assert handle.run_id
    assert handle.result(timeout=5) == Order("1", Decimal("5.00"))


def test_a_default_of_the_workflow_may_be_left_out(durable: WorkflowClient):
    assert durable.start(echo, "a").result(timeout=5) == "a"
    assert durable.start(echo, "a", 3).result(timeout=5) == "aaa"


def test_a_start_without_an_id_makes_one(durable: WorkflowClient):
    first, second = durable.start(echo, "a"), durable.start(echo, "a")
    assert first.id != second.id
    assert len(first.id) == 36


def test_a24_a_taken_id_with_the_same_input_answers_with_its_run(durable: WorkflowClient):
    first = durable.start(echo, "a", id="w")
    again = durable.start(echo, "a", id="w")
    assert (again.run_id, again.created) == (first.run_id, False)
    with pytest.raises(WorkflowAlreadyStarted) as caught:
        durable.start(echo, "b", id="w")
    assert caught.value.run_id == first.run_id


def test_a24_a_request_id_makes_a_repeated_start_answer_with_the_same_run(durable: WorkflowClient):
    first = durable.start(echo, "a", id="w", request_id="r1", id_reuse_policy="allow_duplicate")
    first.result(timeout=5)
    again = durable.start(echo, "a", id="w", request_id="r1", id_reuse_policy="allow_duplicate")
    other = durable.start(echo, "a", id="w", request_id="r2", id_reuse_policy="allow_duplicate")
    assert again.run_id == first.run_id
    assert other.run_id != first.run_id


@pytest.mark.parametrize(
    ("policy", "new_run"), [("use_existing", False), ("allow_duplicate", True), ("allow_duplicate_failed_only", None)]
)
def test_a24_the_policy_says_what_a_closed_run_means(durable: WorkflowClient, policy: str, new_run: bool | None):
    first = durable.start(echo, "a", id="w")
    first.result(timeout=5)
    if new_run is None:
        with pytest.raises(WorkflowAlreadyStarted):
            durable.start(echo, "a", id="w", id_reuse_policy=policy)
    else:
        assert (durable.start(echo, "a", id="w", id_reuse_policy=policy).run_id != first.run_id) is new_run


def test_a24_terminate_existing_ends_the_open_run_first(durable: WorkflowClient):
    first = durable.start(Approval.run, 1, id="w")
    second = durable.start(Approval.run, 1, id="w", id_reuse_policy="terminate_existing")
    assert second.run_id != first.run_id
    assert first.describe().status is RunStatus.TERMINATED
    assert second.describe().status.is_open


def test_a_class_is_started_by_its_run_method_on_its_queue(durable: WorkflowClient, world: World):
    handle = durable.start(Approval.run, 500, id="approval-7")
    assert world.run("approval-7").queue == "approvals"
    handle.signal(Approval.approve, "ann")
    assert handle.result(timeout=5) == "500 by ann"


def test_a_queue_given_at_the_start_wins(durable: WorkflowClient, world: World):
    durable.start(echo, "a", id="w", queue="slow")
    assert world.run().queue == "slow"


def test_a_workflow_is_started_by_name(durable: WorkflowClient):
    assert durable.start("client.echo", "a", 2).result(timeout=5) == "aa"


def test_a_name_that_is_known_elsewhere_needs_its_queue(durable: WorkflowClient, world: World):
    with pytest.raises(InvalidArgument, match=r"did you mean 'client\.echo'.*queue=") as caught:
        durable.start("client.ech", "a", id="w")
    assert caught.value.argument == "run"
    durable.start("elsewhere", 1, {"a": 2}, id="w", queue="far")
    assert (world.run().queue, world.run().workflow_type) == ("far", "elsewhere")


def test_a_memo_is_kept_with_the_run(durable: WorkflowClient):
    assert durable.start(echo, "a", memo={"by": "ann"}).describe().memo == {"by": "ann"}


BAD_STARTS: list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = [
    ("run", "", ("a",), {}),
    ("run", " blank", ("a",), {"queue": "q"}),
    ("run", 5, ("a",), {}),
    ("run", lambda: None, (), {}),
    ("run", Order, (), {}),
    ("value", echo, (), {}),
    ("value", echo, (5,), {}),
    ("times", echo, ("a", "3"), {}),
    ("times", echo, ("a", True), {}),
    ("arguments", echo, ("a", 1, 2), {}),
    ("given", order, ("an order",), {}),
    ("value", anything, (object(),), {}),
    ("value", anything, (float("nan"),), {}),
    ("value", anything, ("\ud800",), {}),
    ("id", echo, ("a",), {"id": ""}),
    ("id", echo, ("a",), {"id": "w "}),
    ("id", echo, ("a",), {"id": "w\x1b[31m"}),
    ("id", echo, ("a",), {"id": "\udcff"}),
    ("id", echo, ("a",), {"id": "é" * 128}),
    ("id", echo, ("a",), {"id": 5}),
    ("queue", echo, ("a",), {"queue": ""}),
    ("queue", echo, ("a",), {"queue": 5}),
    ("request_id", echo, ("a",), {"request_id": "\n"}),
    ("id_reuse_policy", echo, ("a",), {"id_reuse_policy": "reject"}),
    ("id_reuse_policy", echo, ("a",), {"id_reuse_policy": None}),
    ("memo", echo, ("a",), {"memo": object()}),
]


@pytest.mark.parametrize(("argument", "run", "args", "options"), BAD_STARTS)
def test_a_bad_start_is_refused_by_name_and_stores_nothing(
    durable: WorkflowClient, argument: str, run: Any, args: tuple[Any, ...], options: dict[str, Any]
):
    with pytest.raises(InvalidArgument) as caught:
        durable.start(run, *args, **options)
    assert caught.value.argument == argument
    assert durable.list().items == []


def test_a_payload_over_the_limit_is_refused(durable: WorkflowClient):
    with pytest.raises(PayloadError, match="orchestrator_payload_limit"):
        durable.start(echo, "a" * 3_000_000)
    assert durable.list().items == []


@pytest.mark.parametrize(
    "id_", ["a/b", 'it\'s "quoted"', "with spaces inside", "🧾 наказ", "x" * 255, "%s;--", "مرحبا"]
)
def test_other_ids_are_kept_byte_exact(durable: WorkflowClient, id_: str):
    handle = durable.start(echo, "a", id=id_)
    assert handle.result(timeout=5) == "a"
    assert [run.id for run in durable.list(workflow_id=id_).items] == [id_]
    assert durable.get_handle(id_).describe().id == id_


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1", True, timedelta.max, timedelta(seconds=-1)])
def test_a_bad_timeout_is_refused_by_name(durable: WorkflowClient, timeout: Any):
    with pytest.raises(InvalidArgument) as caught:
        durable.get_handle("w").result(timeout=timeout)
    assert caught.value.argument == "timeout"
