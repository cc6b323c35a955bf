"""PARITY A16, A18, A20, A23: waits, side effects, timers, and how a run ends."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from orchestrator import workflow
from orchestrator.engine.decision import Outcome, decide
from orchestrator.model.records import Attention, RunStatus
from orchestrator.store import timers as rows
from orchestrator.types import new_id, to_datetime
from tests.conformance.engine.world import World

SECOND = timedelta(seconds=1)


@workflow.defn(name="commands.wait", signals={"go": str})
async def wait() -> str:
    return await workflow.wait_for_signal("go", str, timeout=timedelta(days=3))


def test_a16_a_wait_is_recorded_once_with_its_timers_number(world: World) -> None:
    world.start("commands.wait")
    world.decisions()
    events = world.events()
    wait_event = next(event.body for event in events if event.kind == "SignalWaitOpened")
    timer = next(event.body for event in events if event.kind == "TimerStarted")
    assert getattr(wait_event, "timer") == getattr(timer, "number")
    assert world.kinds().count("SignalWaitOpened") == 1
    world.signal("go", "x")
    world.work()
    assert world.result() == "x"
    assert world.kinds().count("SignalWaitOpened") == 1
    assert "TimerCancelled" not in world.kinds()[-1:]


calls: list[str] = []


def _second() -> dict[str, int]:
    calls.append("second")
    return {"n": 1}


@workflow.defn(name="commands.side_effect")
async def side_effect() -> list[object]:
    first = workflow.side_effect(lambda: calls.append("first"), name="first")
    second = workflow.side_effect(_second, name="second")
    await asyncio.sleep(1)
    return [first, second, workflow.side_effect(lambda: 3, name="third")]


def test_a18_a_side_effect_runs_once_and_its_recorded_value_is_replayed(world: World) -> None:
    calls.clear()
    world.start("commands.side_effect")
    world.decisions()
    assert world.kinds() == ["RunStarted", "SideEffectRecorded", "SideEffectRecorded", "TimerStarted"]
    world.tick(2 * SECOND)
    world.work()
    assert calls == ["first", "second"]
    assert world.result() == [None, {"n": 1}, 3]


@workflow.defn(name="commands.timers")
async def timers(seconds: float) -> list[str]:
    before = workflow.now()
    await workflow.sleep(timedelta(seconds=seconds))
    return [before.isoformat(), workflow.now().isoformat()]


def test_a20_a_timer_is_a_row_and_an_event_and_fires_once_and_never_early(world: World) -> None:
    world.start("commands.timers", 2.5)
    world.decisions()
    event = world.events()[-1].body
    assert getattr(event, "duration_us") == 2_500_000
    world.tick(timedelta(seconds=2.4))
    world.work()
    assert world.status() is RunStatus.RUNNING
    world.tick(SECOND)
    world.work()
    world.tick(SECOND)
    world.work()
    assert world.kinds() == ["RunStarted", "TimerStarted", "TimerFired", "RunCompleted"]
    before, after = world.result()
    assert datetime.fromisoformat(after) - datetime.fromisoformat(before) >= timedelta(seconds=2.5)


def test_a20_a_timer_of_zero_is_due_at_once_and_still_a_timer(world: World) -> None:
    world.start("commands.timers", 0)
    world.decisions()
    assert world.kinds() == ["RunStarted", "TimerStarted"]
    world.tick(SECOND)
    world.work()
    assert world.status() is RunStatus.COMPLETED


def test_a_cancelled_timer_leaves_no_row_and_its_late_firing_no_event(world: World) -> None:
    world.start("commands.cancels")
    world.decisions()
    world.signal("go")
    world.tick(timedelta(seconds=11))  # both are in the inbox now: the signal first
    world.work()
    assert "TimerFired" not in world.kinds()
    assert world.result() == "signalled"
    with world.db.read() as conn:
        assert rows.next_due(conn) is None


@workflow.defn(name="commands.cancels", signals={"go": None})
async def cancels() -> str:
    sleeping = asyncio.create_task(asyncio.sleep(10))
    await workflow.wait_for_signal("go")
    sleeping.cancel()
    return "signalled"


@workflow.defn(name="commands.fails")
async def fails(text: str) -> None:
    raise ValueError(text)


def test_a23_a_failure_keeps_its_text_or_gets_a_default(world: World) -> None:
    world.start("commands.fails", "reason", id="one")
    world.start("commands.fails", "", id="two")
    world.decisions()
    assert (world.status("one"), world.failure("one")) == (RunStatus.FAILED, "ValueError: reason")
    assert world.status("two") is RunStatus.FAILED
    assert world.failure("two") in ("ValueError: workflow raised an error", "ValueError: ")


@workflow.defn(name="commands.returns_nothing")
async def returns_nothing() -> None:
    return None


def test_a23_a_result_is_optional(world: World) -> None:
    world.start("commands.returns_nothing")
    world.decisions()
    assert world.result() is None


def test_an_unknown_type_blocks_the_run_and_new_code_unblocks_it(world: World) -> None:
    name = f"commands.not_yet_deployed.{new_id()}"
    world.start(name)
    world.decisions()
    run = world.run()
    assert (run.status, run.attention) == (RunStatus.PENDING, Attention.BLOCKED)

    @workflow.defn(name=name)
    async def deployed() -> str:
        return "here"

    decide(world.engine, run.run_id)
    assert world.result() == "here"


@workflow.defn(name="commands.buggy")
async def buggy() -> None:
    undefined_name  # type: ignore[name-defined]  # noqa: B018, F821


def test_a_blocked_run_ignores_wake_ups_until_its_next_try(world: World) -> None:
    world.start("commands.buggy")
    world.decisions()
    assert world.run().blocked_count == 1
    assert decide(world.engine, world.run().run_id) is Outcome.BLOCKED
    assert world.run().blocked_count == 1
    assert world.observer.names() == ["run_blocked"]
    for _ in range(5):
        world.tick(SECOND)
        world.decisions()
    assert 2 <= world.run().blocked_count <= 3


def test_the_time_of_a_decision_is_the_time_workflow_code_sees(world: World) -> None:
    world.start("commands.timers", 1)
    world.decisions()
    started = world.events()[0].at
    world.tick(3 * SECOND)
    world.work()
    assert datetime.fromisoformat(world.result()[0]) == to_datetime(started)
