"""PARITY A01–A12: claiming and committing a decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from orchestrator import workflow
from orchestrator.engine import decision
from orchestrator.engine.decision import Outcome, decide
from orchestrator.engine.observers import Observer
from orchestrator.errors import Unavailable
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from orchestrator.model.records import Attention, RunStatus
from orchestrator.runtime.instance import Instance
from orchestrator.store import history, runs
from orchestrator.store.database import RunLock
from orchestrator.store.failures import TryAgain
from tests.conformance.engine.world import World


@workflow.defn(name="parity.echo")
async def echo(value: object) -> object:
    return value


@workflow.defn(name="parity.two_steps")
async def two_steps() -> list[object]:
    first = await workflow.execute_activity("step", args=["one"])
    second = await workflow.execute_activity("step", args=["two"])
    return [first, second]


@workflow.defn(name="parity.parked", signals={"go": str})
async def parked() -> str:
    return await workflow.wait_for_signal("go", str)


@workflow.defn(name="parity.sleeper")
async def sleeper(seconds: int) -> str:
    await asyncio.sleep(seconds)
    return "slept"


def test_a01_a_wake_up_with_nothing_to_do_is_a_no_op(world: World) -> None:
    world.start("parity.parked")
    world.decisions()
    before = world.run()
    assert decide(world.engine, before.run_id) is Outcome.NOTHING
    assert decide(world.engine, "no-such-run") is Outcome.GONE
    assert world.run() == before


def test_a02_a_decision_sees_run_and_history_in_order_read_after_the_lock(world: World) -> None:
    world.start("parity.parked")
    world.decisions()
    with world.db.lock_run(world.run().run_id) as lock:
        assert lock is not None
        assert lock.run().status is RunStatus.RUNNING
        assert [event.seq for event in lock.events()] == [1, 2]
    world.signal("go", "x")
    world.decisions()
    assert world.kinds() == ["RunStarted", "SignalWaitOpened", "SignalReceived", "RunCompleted"]


def test_a03_a_decider_that_finds_the_run_taken_ends_at_once(world: World) -> None:
    world.start("parity.echo", 1)
    run_id = world.run().run_id
    with world.db.lock_run(run_id) as lock:
        assert lock is not None
        assert decide(world.engine, run_id) is Outcome.TAKEN
    assert decide(world.engine, run_id) is Outcome.DECIDED


def test_a04_the_first_decision_turns_pending_into_running_with_what_it_decides(world: World) -> None:
    world.start("parity.two_steps")
    assert world.status() is RunStatus.PENDING
    world.decisions()
    assert world.status() is RunStatus.RUNNING
    assert world.kinds() == ["RunStarted", "ActivityScheduled"]
    assert world.observer.names() == ["run_started"]
    name, notice = world.observer.notices[0]
    assert getattr(notice, "namespace") == "default"


def test_a05_a_parked_run_is_running_and_later_decisions_notify_nothing(world: World) -> None:
    world.start("parity.two_steps")
    world.functions["step"] = str.upper
    world.decisions()
    started = world.run().started_at
    world.work()
    assert world.result() == ["ONE", "TWO"]
    assert world.run().started_at == started
    assert world.observer.names() == ["run_started", "run_closed"]


class Failing(Observer):
    def run_started(self, notice: object) -> None:
        raise RuntimeError("observer is broken")


def test_a06_a_failing_observer_is_logged_and_fails_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    object.__setattr__(world.engine, "observers", [Failing(), world.observer])
    world.start("parity.echo", 1)
    world.decisions()
    assert world.status() is RunStatus.COMPLETED
    assert world.observer.names() == ["run_started", "run_closed"]
    assert "observer is broken" in caplog.text


def test_a07_a_crash_in_a_decision_leaves_the_run_as_it_was_and_the_cancel_in_its_inbox(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.start("parity.parked")
    world.decisions()
    before, events = world.run(), world.events()
    world.cancel()

    def crash(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(history, "append", crash)
        with pytest.raises(KeyboardInterrupt):
            decide(world.engine, before.run_id)
    assert (world.run(), world.events()) == (before, events)
    world.decisions()
    assert world.status() is RunStatus.CANCELED


def test_a08_commands_apply_in_the_order_they_were_issued(world: World) -> None:
    world.start("parity.ordered")
    world.decisions()
    kinds = [(event.kind, getattr(event.body, "number", None)) for event in world.events()]
    assert kinds == [("RunStarted", None), ("ActivityScheduled", 1), ("TimerStarted", 2), ("ActivityScheduled", 3)]


@workflow.defn(name="parity.ordered")
async def ordered() -> None:
    first = asyncio.create_task(_by_name("a"))
    second = asyncio.create_task(asyncio.sleep(5))
    third = asyncio.create_task(_by_name("b"))
    await asyncio.gather(first, second, third)


async def _by_name(name: str) -> object:
    return await workflow.execute_activity(name)


class Unknown(cmd.Command):
    def event(self) -> ev.EventBody:
        return ev.RunStarted()


def _issue(monkeypatch: pytest.MonkeyPatch, *commands: cmd.Command) -> None:
    real = Instance.apply

    def apply(self: Instance, body: ev.EventBody, at: int) -> list[cmd.Command]:
        return [*real(self, body, at), *commands]

    monkeypatch.setattr(Instance, "apply", apply)


def test_a09_a_command_the_engine_does_not_know_blocks_the_run_with_nothing_half_applied(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.start("parity.two_steps")
    with monkeypatch.context() as patch:
        _issue(patch, Unknown())
        world.decisions()
    assert world.events() == []
    assert world.run().attention is Attention.BLOCKED
    assert "does not know the command Unknown" in world.failure()
    world.tick(timedelta(seconds=2))
    world.decisions()
    assert (world.status(), world.run().attention) == (RunStatus.RUNNING, Attention.NONE)


def test_a10_a_decision_by_someone_who_lost_the_lock_cannot_commit(world: World) -> None:
    world.start("parity.echo", 1)
    run = world.run()
    with pytest.raises((TryAgain, Unavailable)), world.db.lock_run(run.run_id) as lock:
        assert lock is not None
        lock.run()
        _take_the_lock_away(world, lock, run.run_id)
        runs.update(lock.connection(), run.run_id, {"decision_token": "mine"})
        lock.commit()
    assert world.run().decision_token != "mine"
    decide(world.engine, run.run_id)
    assert world.status() is RunStatus.COMPLETED


def _take_the_lock_away(world: World, lock: RunLock, run_id: str) -> None:
    """PostgreSQL: the holder's session is ended. SQLite: another process has decided meanwhile."""
    if world.db.dialect == "postgresql":
        pid = lock.connection().scalar(text("SELECT pg_backend_pid()"))
        with world.db.write() as conn:
            conn.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
    else:
        with world.db.write() as conn:
            runs.update(conn, run_id, {"decision_token": "somebody else's"})


def test_a11_nothing_can_follow_a_closing_command(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.start("parity.echo", 1)
    extra = cmd.StartTimer(number=9, due_at=1, duration_us=1)
    with monkeypatch.context() as patch:
        _issue(patch, extra)
        world.decisions()
    assert world.events() == []
    assert "StartTimer follows CompleteRun" in world.failure()


def test_a12_event_numbers_are_gap_free_from_one_and_unique_by_constraint(world: World) -> None:
    world.functions["step"] = str.upper
    world.start("parity.two_steps")
    world.work()
    events = world.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    with pytest.raises(IntegrityError), world.db.write() as conn:
        history.append(conn, world.run().run_id, [ev.Event(seq=1, at=0, body=ev.RunStarted())])


def test_an_event_is_never_earlier_than_the_one_before_it(world: World) -> None:
    world.start("parity.sleeper", 5)
    world.decisions()
    world.clock._now -= 60_000_000  # the database's clock steps back
    world.signal("ignored")
    world.cancel()
    world.decisions()
    times = [event.at for event in world.events()]
    assert times == sorted(times)
    assert world.status() is RunStatus.CANCELED


def test_a_decision_goes_on_for_bounded_rounds_and_then_wakes_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision, "MAX_ROUNDS", 1)
    monkeypatch.setattr(decision, "DRAIN_ROWS", 1)
    world.start("parity.parked")
    world.decisions()
    for index in range(3):
        world.signal("go", str(index), signal_id=f"s{index}")
    while world.transport.pop() is not None:
        pass
    decide(world.engine, world.run().run_id)
    assert world.status() is RunStatus.COMPLETED
    world.decisions()
    assert world.inbox() == []


def test_an_unexpected_error_of_a_replay_is_visible_on_the_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.start("parity.echo", 1)

    def broken(self: Instance, body: ev.EventBody, at: int) -> list[cmd.Command]:
        raise KeyError("a bug of ours")

    with monkeypatch.context() as patch:
        patch.setattr(Instance, "apply", broken)
        world.decisions()
    assert world.run().attention is Attention.BLOCKED
    assert "a bug of ours" in world.failure()


@workflow.defn(name="parity.long")
async def long() -> str:
    for _ in range(5):
        await workflow.execute_activity("step", args=["x"])
    return "done"


def test_a_long_history_is_warned_of_once_and_blocks_at_its_limit(
    make_world: Callable[..., World], caplog: pytest.LogCaptureFixture
) -> None:
    world = make_world(history_warn=3, history_limit=6)
    world.functions["step"] = str.upper
    world.start("parity.long")
    world.work()
    assert caplog.text.count("each decision replays them") == 1
    assert world.run().attention is Attention.BLOCKED
    assert "orchestrator_history_limit is 6" in world.failure()
    assert len(world.events()) == 6
    object.__setattr__(world.engine.settings, "history_limit", 100)
    world.tick(timedelta(seconds=2))
    world.work()
    assert world.result() == "done"
