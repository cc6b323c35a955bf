"""Starting and signalling inside the caller's own transaction: what it commits happens, what it rolls back never did."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator import workflow
from orchestrator.engine import outbox, runs
from orchestrator.engine.runs import StartRequest
from orchestrator.engine.signals import SignalRequest
from orchestrator.errors import WorkflowNotFound
from orchestrator.model.records import RunStatus
from orchestrator.store import outbox as rows
from orchestrator.store.database import Connection
from tests.conformance.engine.world import NS, World


@workflow.defn(name="within.collect", signals={"add": str})
async def collect(count: int) -> list[str]:
    return [await workflow.wait_for_signal("add", str) for _ in range(count)]


def start_within(world: World, conn: Connection, count: int, id: str = "w") -> runs.StartResult:
    payload = world.converter.encode_args((count,), [int], names=["count"])
    request = StartRequest(namespace=NS, workflow_id=id, workflow_type="within.collect", queue="celery", input=payload)
    return runs.start_within(world.engine, conn, request)


def signal_within(world: World, conn: Connection, value: str) -> None:
    payload = world.converter.encode_args((value,), [str], names=["value"])
    request = SignalRequest(target=world.target(), name="add", signal_id=f"id-{value}", payload=payload)
    outbox.enqueue_signal(world.engine, conn, request)


def test_a_start_that_is_committed_runs_after_the_next_sweep_without_a_wake_up(world: World) -> None:
    with world.db.write() as conn:
        start_within(world, conn, 0)
    assert world.transport.pop() is None, "nothing is published inside the caller's transaction"
    world.tick()
    world.work()
    assert world.result() == []


def test_a_start_that_is_rolled_back_never_was(world: World) -> None:
    with pytest.raises(ZeroDivisionError), world.db.write() as conn:
        start_within(world, conn, 0)
        raise ZeroDivisionError
    world.tick()
    with pytest.raises(AssertionError):
        world.run()


def test_a_signal_in_the_transaction_that_starts_the_run_reaches_it(world: World) -> None:
    with world.db.write() as conn:
        start_within(world, conn, 2)
        signal_within(world, conn, "one")
        signal_within(world, conn, "two")
    world.tick()
    world.work()
    assert world.result() == ["one", "two"]


def test_a_signal_that_is_rolled_back_is_never_delivered(world: World) -> None:
    world.start("within.collect", 1)
    with pytest.raises(ZeroDivisionError), world.db.write() as conn:
        signal_within(world, conn, "one")
        raise ZeroDivisionError
    world.tick()
    world.work()
    assert world.status() is RunStatus.RUNNING
    assert "SignalReceived" not in world.kinds()


def test_a_signal_to_nobody_is_refused_within_the_transaction(world: World) -> None:
    with pytest.raises(WorkflowNotFound), world.db.write() as conn:
        signal_within(world, conn, "one")


def test_a_signal_refused_at_delivery_is_logged_and_does_not_stop_the_others(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.start("within.collect", 1)
    with world.db.write() as conn:
        signal_within(world, conn, "one")
        signal_within(world, conn, "one")
    world.signal("add", "zero")
    world.work()
    assert world.result() == ["zero"]
    world.tick(timedelta(seconds=1))
    assert "could not be delivered" in caplog.text
    with world.db.write() as conn:
        assert rows.due(conn, world.clock.now() + 10**12, 10) == []
