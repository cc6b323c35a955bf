"""PARITY A24–A26, A30, F10, F16: starting twice, cancelling, terminating, reading."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from datetime import timedelta
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.engine import attempts, blocking, decision, runs
from orchestrator.errors import WorkflowAlreadyStarted, WorkflowClosed, WorkflowNotFound
from orchestrator.model.records import ActivityState, Attention, InboxKind, RunStatus
from orchestrator.store import history
from tests.conformance.engine.world import World


@workflow.defn(name="control.wait", signals={"go": str})
async def wait(value: str) -> str:
    return value + await workflow.wait_for_signal("go", str)


@workflow.defn(name="control.cleans_up")
async def cleans_up() -> str:
    try:
        await workflow.execute_activity("long")
    except asyncio.CancelledError:
        await workflow.execute_activity("cleanup")
        raise
    return "done"


@workflow.defn(name="control.swallows", signals={"go": str})
async def swallows() -> str:
    with contextlib.suppress(asyncio.CancelledError):
        await workflow.wait_for_signal("go", str)
    return await workflow.wait_for_signal("go", str)


def test_a24_f10_a_start_is_idempotent_on_id_type_and_input(world: World) -> None:
    first = world.start("control.wait", "x")
    again = world.start("control.wait", "x")
    assert (first.created, again.created) == (True, False)
    assert again.run.run_id == first.run.run_id
    with pytest.raises(WorkflowAlreadyStarted) as caught:
        world.start("control.wait", "other")
    assert caught.value.run_id == first.run.run_id
    with pytest.raises(WorkflowAlreadyStarted):
        world.start("control.cleans_up")


def test_a24_a_request_id_returns_the_same_run_even_after_it_closed(world: World) -> None:
    first = world.start("control.wait", "x", request_id="r1", id_reuse_policy="allow_duplicate")
    world.terminate()
    again = world.start("control.wait", "x", request_id="r1", id_reuse_policy="allow_duplicate")
    assert again.run.run_id == first.run.run_id
    other = world.start("control.wait", "x", request_id="r2", id_reuse_policy="allow_duplicate")
    assert other.created


@pytest.mark.parametrize(
    ("policy", "completed", "terminated"),
    [
        ("use_existing", "existing", "existing"),
        ("allow_duplicate", "new", "new"),
        ("allow_duplicate_failed_only", "refused", "new"),
        ("reject_duplicate", "refused", "refused"),
        ("terminate_existing", "new", "new"),
    ],
)
def test_a24_the_reuse_policies_over_a_closed_run(world: World, policy: str, completed: str, terminated: str) -> None:
    for id, ending, expected in (("c", "complete", completed), ("t", "terminate", terminated)):
        first = world.start("control.wait", "x", id=id)
        if ending == "complete":
            world.signal("go", "y", id=id)
            world.work()
        else:
            world.terminate(id)
        assert not world.status(id).is_open
        if expected == "refused":
            with pytest.raises(WorkflowAlreadyStarted):
                world.start("control.wait", "x", id=id, id_reuse_policy=policy)
        else:
            second = world.start("control.wait", "x", id=id, id_reuse_policy=policy)
            assert second.created is (expected == "new")
            assert (second.run.run_id == first.run.run_id) is (expected == "existing")


def test_a24_terminate_existing_ends_an_open_run_first(world: World) -> None:
    first = world.start("control.wait", "x")
    world.decisions()
    second = world.start("control.wait", "other", id_reuse_policy="terminate_existing")
    assert second.created
    with world.db.read() as conn:
        from orchestrator.store import runs

        old = runs.get(conn, first.run.run_id)
    assert old is not None
    assert old.status is RunStatus.TERMINATED


def test_a24_twenty_simultaneous_starts_make_one_run(world: World) -> None:
    results: list[str] = []
    errors: list[BaseException] = []

    def start() -> None:
        try:
            results.append(world.start("control.wait", "x").run.run_id)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert len(results) == 20
    assert len(set(results)) == 1


def test_a30_cancelling_a_never_started_run_closes_it_at_once(world: World) -> None:
    world.start("control.wait", "x")
    world.cancel(reason="not needed")
    world.decisions()
    assert world.status() is RunStatus.CANCELED
    assert world.kinds() == ["CancelRequested", "RunCanceled"]
    assert world.run().close_reason == "not needed"


def test_a15_an_acknowledged_cancellation_closes_the_run_as_canceled(world: World) -> None:
    world.start("control.wait", "x")
    world.decisions()
    world.cancel(reason="customer asked")
    world.decisions()
    assert (world.status(), world.run().close_reason) == (RunStatus.CANCELED, "customer asked")
    assert world.kinds()[-2:] == ["CancelRequested", "RunCanceled"]


def test_a30_f16_the_code_sees_a_cancellation_at_its_await_and_may_clean_up(world: World) -> None:
    world.functions["cleanup"] = lambda: None
    world.start("control.cleans_up")
    claim = world.claimed()
    world.cancel()
    world.decisions()
    assert attempts.heartbeat(world.engine, claim, None).cancel_requested
    assert world.status() is RunStatus.RUNNING
    world.work()
    assert [name for name, _ in world.calls] == ["cleanup"]
    assert world.status() is RunStatus.CANCELED
    assert attempts.complete(world.engine, claim, world.encode("late")) is False
    world.work()
    assert world.inbox() == []
    assert world.kinds()[-1] == "RunCanceled"


def test_a_cancelled_activity_that_was_not_claimed_never_runs(world: World) -> None:
    world.functions["cleanup"] = lambda: None
    world.start("control.cleans_up")
    message = world.next_attempt()
    world.cancel()
    world.work()
    assert world.status() is RunStatus.CANCELED
    assert world.activity(1).state is ActivityState.CANCELED
    assert not hasattr(world.claim(message), "token")


def test_a_cancel_that_code_swallows_is_visible_and_a_second_one_works(world: World) -> None:
    world.start("control.swallows")
    world.decisions()
    world.cancel()
    world.decisions()
    assert (world.status(), world.kinds().count("CancelRequested")) == (RunStatus.RUNNING, 1)
    world.cancel()
    world.decisions()
    assert world.status() is RunStatus.CANCELED


def test_a30_terminating_runs_no_code_and_is_recorded_with_its_reason(world: World) -> None:
    world.start("control.cleans_up")
    claim = world.claimed()
    world.terminate(reason="stop it")
    assert world.status() is RunStatus.TERMINATED
    assert world.kinds()[-1] == "RunTerminated"
    assert world.run().close_reason == "stop it"
    assert attempts.heartbeat(world.engine, claim, None).current is False
    assert world.observer.names()[-1] == "run_closed"


def test_a_blocked_run_can_be_terminated(world: World) -> None:
    world.start("control.unknown_type")
    world.decisions()
    world.terminate()
    assert world.status() is RunStatus.TERMINATED


@pytest.mark.parametrize("verb", ["cancel", "terminate"])
def test_a30_a_closed_run_refuses_and_says_so(world: World, verb: str) -> None:
    world.start("control.wait", "x")
    world.terminate()
    with pytest.raises(WorkflowClosed, match="TERMINATED"):
        getattr(world, verb)()
    with pytest.raises(WorkflowNotFound):
        getattr(world, verb)(id="nobody")


def test_f16_cancel_against_completion_gives_exactly_one_closing_event(world: World) -> None:
    world.start("control.wait", "x")
    world.decisions()
    world.signal("go", "y")
    world.cancel()
    world.decisions()
    closing = [kind for kind in world.kinds() if kind in ("RunCompleted", "RunCanceled", "RunFailed")]
    assert len(closing) == 1
    assert world.run().status in (RunStatus.COMPLETED, RunStatus.CANCELED)
    assert world.kinds().count("SignalReceived") == 1
    assert world.kinds().count("CancelRequested") == 1


def test_closing_a_run_leaves_no_timer_no_open_activity_and_no_inbox_row(world: World) -> None:
    world.start("control.leaves_much")
    world.decisions()
    world.terminate()
    from orchestrator.store import activities, timers

    with world.db.read() as conn:
        assert timers.next_due(conn) is None
        assert activities.open_of_run(conn, world.run().run_id) == []
    assert world.inbox() == []
    for _ in range(3):
        world.tick(timedelta(hours=1))
    assert not world.status().is_open


@workflow.defn(name="control.leaves_much")
async def leaves_much() -> None:
    await asyncio.gather(asyncio.sleep(60), workflow.execute_activity("a"), workflow.execute_activity("b"))


def test_a_terminate_that_comes_while_a_decision_blocks_the_run_is_not_left_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.start("control.unknown_type")
    sent: list[str] = []
    real = blocking.block

    def block_late(*args: Any) -> Any:
        if not sent:
            thread = threading.Thread(
                target=lambda: sent.append(runs._tell(world.engine, world.target(), InboxKind.TERMINATE, "now"))
            )
            thread.start()
            thread.join(30)
        return real(*args)

    monkeypatch.setattr("orchestrator.engine.decision.block", block_late)
    decision.decide(world.engine, world.run().run_id)
    assert world.status() is RunStatus.TERMINATED


def test_a_cancel_whose_commit_was_never_answered_is_stored_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.start("control.wait", "x")
    world.decisions()
    real = runs._insert_once
    calls: list[int] = []

    def twice(*args: Any) -> Any:
        answer = real(*args)
        calls.append(1)
        if len(calls) == 1:
            real(*args)  # what a second try of the same call does after a lost answer
        return answer

    monkeypatch.setattr(runs, "_insert_once", twice)
    world.cancel()
    assert len(world.inbox()) == 1


def test_a_decision_that_cannot_be_stored_blocks_the_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.start("control.wait", "x")

    def refuse(*args: object) -> None:
        raise ValueError("value out of range")

    with monkeypatch.context() as patch:
        patch.setattr(history, "append", refuse)
        world.decisions()
    assert (world.run().attention, world.events()) == (Attention.BLOCKED, [])
    assert "can't be stored" in world.failure()
    world.tick(timedelta(seconds=2))
    world.decisions()
    assert world.run().attention is Attention.NONE
