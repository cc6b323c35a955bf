"""Waiting for results: what comes back, what is raised, and how it waits."""

import asyncio
import time
from decimal import Decimal

import pytest

from orchestrator.client import WorkflowClient
from orchestrator.errors import (
    ActivityError,
    ApplicationError,
    InvalidArgument,
    Unavailable,
    WorkflowBlocked,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowNotFound,
    WorkflowTerminated,
)
from orchestrator.model.records import Attention
from tests.conformance.engine.world import World
from tests.unit.client.flows import Approval, Order, broken, declined, echo, failing, grouped, order, waiter


def test_a_failed_workflow_raises_with_the_rebuilt_chain_of_causes(durable: WorkflowClient):
    handle = durable.start(failing, "card declined", id="w")
    with pytest.raises(WorkflowFailed, match="Declined: card declined") as caught:
        handle.result(timeout=5)
    error = caught.value
    assert (error.workflow_id, error.run_id) == ("w", handle.run_id)
    assert isinstance(error.cause, ApplicationError)
    assert (error.cause.type, error.cause.details) == ("Declined", ({"code": 7},))
    assert error.__cause__ is error.cause
    assert isinstance(error.cause.__cause__, ApplicationError)
    assert (error.cause.__cause__.type, str(error.cause.__cause__)) == ("ValueError", "the root")


def test_an_activity_error_that_ends_the_run_is_its_cause(durable: WorkflowClient, world: World):
    def charge(cents: int) -> None:
        raise ApplicationError("no money", type="Declined", non_retryable=True)

    world.functions["client.charge"] = charge
    with pytest.raises(WorkflowFailed) as caught:
        durable.start(declined).result(timeout=60)
    assert isinstance(caught.value.cause, ActivityError)
    assert caught.value.cause.activity == "client.charge"
    assert caught.value.cause.is_type("Declined")


def test_all_members_of_a_group_are_told(durable: WorkflowClient):
    with pytest.raises(WorkflowFailed, match=r"ValueError: one.*KeyError: 'two'"):
        durable.start(grouped).result(timeout=5)


def test_a_cancelled_and_a_terminated_workflow_raise_their_own_errors(durable: WorkflowClient, world: World):
    for verb, error in (("cancel", WorkflowCanceled), ("terminate", WorkflowTerminated)):
        handle = durable.start(Approval.run, 1)
        world.work()
        getattr(handle, verb)("no longer wanted")
        with pytest.raises(error, match="no longer wanted"):
            handle.result(timeout=5)


def test_a_blocked_workflow_raises_unless_told_to_wait(durable: WorkflowClient):
    handle = durable.start(broken)
    with pytest.raises(WorkflowBlocked, match=r"NameError: nmae.*on_blocked"):
        handle.result(timeout=5)
    with pytest.raises(TimeoutError, match=r"is (RUNNING|PENDING) after 5 s"):
        handle.result(timeout=5, on_blocked="wait")
    assert handle.describe().attention is Attention.BLOCKED


def test_a_result_that_is_late_raises_the_builtin_timeout_and_says_what_to_do(durable: WorkflowClient):
    with pytest.raises(TimeoutError, match=r"is RUNNING after 0.2 s; handle\.describe\(\)"):
        durable.start(waiter).result(timeout=0.2)


def test_a_timeout_of_zero_looks_once(world: World):
    durable = WorkflowClient(lambda: world.engine, sleep=lambda _: pytest.fail("it slept"))
    handle = durable.start(echo, "a")
    with pytest.raises(TimeoutError, match="no worker has begun it"):
        handle.result(0)
    world.work()
    assert handle.result(0) == "a"


def test_the_looks_grow_rarer_up_to_a_quarter_second_and_end_at_the_timeout(world: World):
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        world.engine.sleep(seconds)

    durable = WorkflowClient(lambda: world.engine, sleep=sleep)
    with pytest.raises(TimeoutError):
        durable.start(waiter).result(timeout=5)
    assert slept[0] == pytest.approx(0.005)
    assert max(slept) == pytest.approx(0.25)
    assert slept == sorted(slept[:-1]) + slept[-1:]
    assert sum(slept) == pytest.approx(5, abs=0.001)


def test_a_waiting_result_holds_no_connection(world: World):
    checked_out: list[int] = []

    def sleep(seconds: float) -> None:
        checked_out.append(world.db.engine.pool.checkedout())  # type: ignore[attr-defined]
        world.engine.sleep(seconds)

    durable = WorkflowClient(lambda: world.engine, sleep=sleep)
    with pytest.raises(TimeoutError):
        durable.start(waiter).result(timeout=1)
    assert set(checked_out) == {0}


def test_a_result_can_be_had_as_plain_json(durable: WorkflowClient):
    durable.start(order, Order("1", Decimal("1.50")), id="w").result(timeout=5)
    assert durable.get_handle("w").with_plain_values().result() == {"id": "1", "price": "3.00"}


def test_a_bad_choice_for_blocked_runs_is_refused(durable: WorkflowClient):
    with pytest.raises(InvalidArgument) as caught:
        durable.start(echo, "a").result(on_blocked="ignore")  # type: ignore[arg-type]
    assert caught.value.argument == "on_blocked"


def test_the_result_of_an_unknown_workflow_says_so(durable: WorkflowClient):
    with pytest.raises(WorkflowNotFound):
        durable.get_handle("nobody").result()


def test_hundreds_of_results_are_awaited_at_once(world: World):
    durable = WorkflowClient(lambda: world.engine)
    handles = [durable.start(echo, str(index)) for index in range(100)]

    async def all_results() -> list[str]:
        waiting = [asyncio.create_task(handle.aresult(on_blocked="wait")) for handle in handles]
        await asyncio.sleep(0.05)
        await asyncio.to_thread(world.work)
        return await asyncio.gather(*waiting)

    # The engine's clock stands still here: the twins sleep on the loop's own clock.
    assert asyncio.run(asyncio.wait_for(all_results(), 60)) == [str(index) for index in range(100)]


def test_a_database_that_is_down_is_unavailable_within_the_limit():
    from orchestrator.config import Settings
    from orchestrator.engine.core import Engine
    from orchestrator.model.payloads import PayloadConverter
    from orchestrator.runtime.registry import default_registry
    from orchestrator.store.database import Database
    from orchestrator.transport.memory import MemoryTransport

    url = "postgresql://127.0.0.1:9/nothing"
    engine = Engine(
        db=Database.open(url),
        transport=MemoryTransport(),
        registry=default_registry(),
        converter=PayloadConverter(),
        settings=Settings(database_url=url),
    )
    durable = WorkflowClient(lambda: engine)
    for call in (
        lambda: durable.start(echo, "a"),
        durable.list,
        lambda: durable.get_handle("w").result(timeout=60),
    ):
        started = time.monotonic()
        with pytest.raises(Unavailable):
            call()
        assert time.monotonic() - started < 10
