"""DESIGN §4 and PARITY F01–F09: signals, exactly."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from orchestrator import workflow
from orchestrator.engine import attempts, signals
from orchestrator.engine.decision import decide
from orchestrator.engine.signals import SignalRequest
from orchestrator.engine.targets import Target
from orchestrator.errors import (
    InboxFull,
    SignalConflict,
    UndeclaredSignal,
    WorkflowClosed,
    WorkflowNotFound,
)
from orchestrator.model.records import Attention, RunStatus
from tests.conformance.engine.world import World

SECOND = timedelta(seconds=1)


@workflow.defn(name="signals.two", signals={"a": str, "b": str})
async def two() -> list[str]:
    first = asyncio.create_task(workflow.wait_for_signal("a", str))
    second = asyncio.create_task(workflow.wait_for_signal("a", str))
    other = await workflow.wait_for_signal("b", str)
    return [await first, await second, other]


@workflow.defn(name="signals.timed", signals={"go": str})
async def timed() -> list[str]:
    got = []
    for _ in range(2):
        try:
            got.append(await workflow.wait_for_signal("go", str, timeout=timedelta(seconds=10)))
        except TimeoutError:
            got.append("timed out")
    return got


@workflow.defn(name="signals.any")
class AnySignal:
    def __init__(self) -> None:
        self.seen: list[str] = []

    @workflow.run
    async def run(self, count: int) -> list[str]:
        await workflow.wait_condition(lambda: len(self.seen) >= count)
        return self.seen

    @workflow.signal
    def add(self, value: str) -> None:
        self.seen.append(value)


@workflow.defn(name="signals.busy", signals={"go": str})
async def busy() -> str:
    step = asyncio.create_task(_step())
    pause = asyncio.create_task(asyncio.sleep(3600))
    got = await workflow.wait_for_signal("go", str)
    pause.cancel()
    await step
    return got


async def _step() -> object:
    return await workflow.execute_activity("step")


@workflow.defn(name="signals.cleanup", signals={"go": str, "late": str})
async def cleanup() -> str:
    try:
        return await workflow.wait_for_signal("go", str)
    except asyncio.CancelledError:
        await workflow.execute_activity("step")
        raise


def test_an_unknown_run_is_not_found(world: World) -> None:
    with pytest.raises(WorkflowNotFound):
        world.signal("go", "x", id="nobody")


def test_a_run_id_of_another_namespace_or_workflow_is_not_found(world: World) -> None:
    world.start("signals.timed")
    run_id = world.run().run_id
    payload = world.converter.encode_args((), [], names=[])
    for namespace, workflow_id in (("other", "w"), ("default", "x")):
        target = Target(namespace=namespace, workflow_id=workflow_id, run_id=run_id)
        with pytest.raises(WorkflowNotFound):
            signals.send(world.engine, SignalRequest(target=target, name="go", signal_id="1", payload=payload))


def test_a_signal_can_be_sent_to_a_run_id(world: World) -> None:
    world.start("signals.timed")
    target = world.target(run_id=world.run().run_id)
    payload = world.converter.encode_args(("x",), [str], names=["value"])
    sent = signals.send(world.engine, SignalRequest(target=target, name="go", signal_id="1", payload=payload))
    assert sent.run_id == world.run().run_id


def test_f02_a_redelivery_to_a_closed_run_succeeds_and_a_conflicting_one_is_a_conflict(world: World) -> None:
    world.start("signals.any", 1)
    world.signal("add", "x", signal_id="s1")
    world.work()
    assert world.status() is RunStatus.COMPLETED
    assert world.signal("add", "x", signal_id="s1").stored is False
    with pytest.raises(SignalConflict) as caught:
        world.signal("add", "other", signal_id="s1")
    assert caught.value.run_id == world.run().run_id
    with pytest.raises(SignalConflict):
        world.signal("undeclared", "x", signal_id="s1")
    with pytest.raises(WorkflowClosed):
        world.signal("add", "x", signal_id="s2")
    with pytest.raises(WorkflowClosed):
        world.signal("undeclared", "x", signal_id="s3")


def test_f03_the_answer_names_the_run_in_which_this_call_stored_the_signal(world: World) -> None:
    world.start("signals.any", 2)
    first = world.signal("add", "x", signal_id="s1")
    again = world.signal("add", "x", signal_id="s1")
    assert (first.stored, first.run_id) == (True, world.run().run_id)
    assert (again.stored, again.run_id) == (False, None)
    world.work()
    assert world.kinds().count("SignalReceived") == 1


def test_a_redelivery_wakes_the_run(world: World) -> None:
    world.start("signals.any", 1)
    world.decisions()
    world.signal("add", "x", signal_id="s1")
    while world.transport.pop() is not None:
        pass
    world.signal("add", "x", signal_id="s1")
    world.work()
    assert world.result() == ["x"]


@workflow.defn(name="signals.fragile")
class Fragile:
    broken = True

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: hasattr(self, "value"))
        return self.value

    @workflow.signal
    def put(self, value: str) -> None:
        if Fragile.broken:
            raise NameError("typo in the handler")
        self.value = value


def test_f04_an_error_of_workflow_code_after_the_signal_was_stored_does_not_lose_it(world: World) -> None:
    Fragile.broken = True
    world.start("signals.fragile")
    world.signal("put", "x", signal_id="s1")
    world.work()
    assert world.run().attention is Attention.BLOCKED
    assert world.signal("put", "x", signal_id="s1").stored is False
    Fragile.broken = False
    world.tick(2 * SECOND)
    world.work()
    assert world.result() == "x"


def test_f05_waits_take_the_oldest_signal_of_their_name_and_do_not_block_others(world: World) -> None:
    world.start("signals.two")
    world.decisions()
    world.signal("b", "b1")
    world.work()
    assert world.status() is RunStatus.RUNNING
    world.signal("a", "a1")
    world.signal("a", "a2")
    world.work()
    assert world.result() == ["a1", "a2", "b1"]


def test_f07_a_signal_buffered_before_its_wait_is_delivered_without_suspending(world: World) -> None:
    world.start("signals.timed")
    world.signal("go", "early")
    world.decisions()
    kinds = world.kinds()
    assert kinds[:2] == ["SignalReceived", "RunStarted"]
    assert "TimerFired" not in kinds
    world.signal("go", "second")
    world.work()
    assert world.result() == ["early", "second"]


def test_f08_a_signal_wakes_the_code_while_a_timer_and_an_activity_are_open(world: World) -> None:
    world.start("signals.busy")
    claim = world.claimed()
    world.signal("go", "now")
    world.decisions()
    assert "TimerCancelled" in world.kinds()
    attempts.complete(world.engine, claim, world.encode(None))
    world.work()
    assert world.result() == "now"


def test_f09_cancellation_cancels_open_waits_and_a_signal_during_cleanup_is_accepted(world: World) -> None:
    world.functions["step"] = lambda: None
    world.start("signals.cleanup")
    world.decisions()
    world.cancel()
    world.decisions()
    assert world.signal("late", "x").stored
    world.work()
    assert world.status() is RunStatus.CANCELED
    assert "SignalReceived" in world.kinds()


def test_with_a_time_out_the_winner_is_the_earlier_event_and_the_signal_stays_for_the_next_wait(world: World) -> None:
    world.start("signals.timed")
    world.decisions()
    world.tick(timedelta(seconds=11))
    world.signal("go", "late")
    world.work()
    assert world.result() == ["timed out", "late"]


def test_both_in_one_drain_the_inbox_order_decides(world: World) -> None:
    world.start("signals.timed")
    world.decisions()
    world.signal("go", "first")
    world.tick(timedelta(seconds=11))
    world.work()
    world.tick(timedelta(seconds=11))
    world.work()
    assert world.result() == ["first", "timed out"]


def test_an_undeclared_name_is_refused_and_the_history_is_unchanged(world: World) -> None:
    world.start("signals.timed")
    with pytest.raises(UndeclaredSignal, match="'nope'"):
        world.signal("nope", "x")
    world.decisions()
    before = world.events()
    with pytest.raises(UndeclaredSignal):
        world.signal("nope", "x")
    world.decisions()
    assert world.events() == before


@workflow.defn(name="signals.undeclared")
async def undeclared() -> str:
    await workflow.execute_activity("step")
    return await workflow.wait_for_signal("whatever", str)


def test_a_type_that_declares_none_accepts_any_name_and_keeps_it(world: World) -> None:
    world.functions["step"] = lambda: None
    world.start("signals.undeclared")
    world.decisions()
    world.signal("whatever", "kept")
    world.work()
    assert world.result() == "kept"


def test_a_full_inbox_refuses_signals_but_takes_outcomes(make_world: object) -> None:
    world: World = make_world(inbox_limit=2)  # type: ignore[operator]
    world.start("signals.busy")
    claim = world.claimed()
    world.signal("go", "1")
    world.signal("go", "2")
    with pytest.raises(InboxFull):
        world.signal("go", "3")
    assert attempts.complete(world.engine, claim, world.encode(None))
    world.work()
    assert world.result() == "1"


def test_a_message_accepted_before_the_close_is_seen_by_the_code(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal arrives between the drain and the gate; the run would have ended without it."""
    world.start("signals.drain")
    world.decisions()
    world.signal("add", "one")
    run_id = world.run().run_id
    with world.db.lock_run(run_id) as probe:
        assert probe is not None
        lock_type = type(probe)
    real = lock_type.enter_gate
    sent: list[object] = []

    def enter_gate(self: object, lineage_id: str) -> None:
        if not sent:
            sent.append(None)
            thread = threading.Thread(target=world.signal, args=("add", "two"))
            thread.start()
            thread.join(10)
        real(self, lineage_id)  # type: ignore[arg-type]

    monkeypatch.setattr(lock_type, "enter_gate", enter_gate)
    decide(world.engine, run_id)
    assert world.result() == ["two", "one"], "placed before the event that ended the run"
    assert world.kinds() == ["RunStarted", "SignalReceived", "SignalReceived", "RunCompleted"]


@workflow.defn(name="signals.drain")
class Drain:
    def __init__(self) -> None:
        self.seen: list[str] = []

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: "one" in self.seen)
        return self.seen

    @workflow.signal
    def add(self, value: str) -> None:
        self.seen.append(value)


def test_signals_found_at_the_first_decision_come_before_run(world: World) -> None:
    world.start("signals.immediate")
    world.signal("add", "x")
    world.decisions()
    assert world.result() == 1
    assert world.kinds() == ["SignalReceived", "RunStarted", "RunCompleted"]


@workflow.defn(name="signals.immediate")
class Immediate:
    def __init__(self) -> None:
        self.count = 0

    @workflow.run
    async def run(self) -> int:
        return self.count

    @workflow.signal
    def add(self, value: str) -> None:
        self.count += 1


def test_what_is_left_unhandled_is_recorded_before_the_closing_event(world: World) -> None:
    world.start("signals.first", id="w")
    world.decisions()
    world.signal("go", "1")
    world.signal("go", "2")
    world.decisions()
    assert world.result() in ("1", "2")
    assert world.kinds() == ["RunStarted", "SignalWaitOpened", "SignalReceived", "SignalReceived", "RunCompleted"]


@workflow.defn(name="signals.first", signals={"go": str})
async def first_signal() -> str:
    return await workflow.wait_for_signal("go", str)


def test_equal_concurrent_sends_become_one_event_and_all_succeed(world: World) -> None:
    world.start("signals.any", 1)
    stored: list[bool] = []
    errors: list[BaseException] = []

    def send() -> None:
        try:
            stored.append(world.signal("add", "x", signal_id="same").stored)
        except BaseException as error:  # the thread's error is the test's
            errors.append(error)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert sorted(stored) == [False] * 7 + [True]
    world.work()
    assert world.kinds().count("SignalReceived") == 1


def test_f01_no_crash_leaves_a_lineage_without_a_leaf(world: World) -> None:
    """Stage 1 has no successors: an open lineage is its one run, before and after any crash."""
    world.start("signals.any", 1)
    assert world.run().lineage_id == world.run().run_id
    assert world.signal("add", "x").run_id == world.run().run_id
