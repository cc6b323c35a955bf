"""Looking at runs: describe, list and history."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.client import WorkflowClient
from orchestrator.errors import ApplicationError, InvalidArgument, WorkflowNotFound
from orchestrator.model.records import ActivityState, Attention, RunStatus
from tests.conformance.engine.world import World
from tests.unit.client.flows import Approval, broken, busy, echo, failing, many, patient, timed_wait, waiter


def now(world: World) -> datetime:
    return datetime.fromtimestamp(world.clock.now() / 1_000_000, UTC)


def test_f25_describe_tells_in_one_call_what_a_run_waits_for(durable: WorkflowClient, world: World):
    handle = durable.start(busy, id="w")
    world.decisions()
    began = now(world)
    message = world.next_attempt()
    world.claimed(message)
    described = handle.describe()
    assert (described.id, described.type, described.status) == ("w", "client.busy", RunStatus.RUNNING)
    assert [(item.name, item.state, item.attempt) for item in described.activities] == [
        ("client.charge", ActivityState.STARTED, 1),
        ("client.ship", ActivityState.SCHEDULED, 1),
    ]
    assert described.activities[0].worker == "worker-1"
    assert described.activities[0].started_at is not None
    assert [timer.due_at for timer in described.timers] == [began + timedelta(seconds=50)]
    assert [wait.name for wait in described.waits] == ["go"]
    assert described.next_wakeup_at == began + timedelta(seconds=50)
    assert described.history_length == len(world.events())


def test_describe_shows_a_retry_with_its_error_and_its_next_attempt(durable: WorkflowClient, world: World):
    def charge() -> None:
        raise ApplicationError("try later", type="Busy")

    world.functions["client.charge"] = charge
    handle = durable.start(busy)
    world.attempt(world.next_attempt())
    charge_row = handle.describe().activities[0]
    assert (charge_row.attempt, charge_row.state, charge_row.last_error) == (
        2,
        ActivityState.SCHEDULED,
        "Busy: try later",
    )
    assert charge_row.next_attempt_at is not None
    assert now(world) < charge_row.next_attempt_at <= now(world) + timedelta(seconds=1)
    assert handle.describe().next_wakeup_at == charge_row.next_attempt_at


def test_describe_tells_why_a_run_is_blocked_and_when_it_is_tried_again(durable: WorkflowClient, world: World):
    handle = durable.start(broken)
    world.work()
    described = handle.describe()
    assert described.attention is Attention.BLOCKED
    assert "nmae" in (described.blocked_reason or "")
    assert described.failure is None
    assert described.next_wakeup_at is not None


def test_describe_tells_how_a_closed_run_ended(durable: WorkflowClient, world: World):
    handle = durable.start(failing, "declined")
    world.work()
    described = handle.describe()
    assert (described.status, described.failure) == (RunStatus.FAILED, "Declined: declined")
    assert described.input == ["declined"]
    assert described.closed_at is not None
    assert (described.activities, described.timers, described.waits, described.next_wakeup_at) == ([], [], [], None)


def test_describe_of_a_run_that_has_not_begun(durable: WorkflowClient):
    handle = durable.start(waiter)
    handle.signal("go", "home")
    described = handle.describe()
    assert (described.status, described.started_at, described.history_length) == (RunStatus.PENDING, None, 0)
    assert described.pending_messages == 1


def test_open_waits_follow_signals_timeouts_and_cancellation(durable: WorkflowClient, world: World):
    handle = durable.start(many)
    world.work()
    assert [wait.name for wait in handle.describe().waits] == ["a", "b", "a"]
    handle.signal("a", 1)
    world.work()
    assert [wait.name for wait in handle.describe().waits] == ["b", "a"]
    timed = durable.start(timed_wait)
    world.work()
    wait = timed.describe().waits[0]
    assert wait.timer == timed.describe().timers[0].number
    world.tick(timedelta(seconds=11))
    world.work()
    assert timed.describe().waits == []


def test_describe_of_an_earlier_run_of_the_same_id(durable: WorkflowClient, world: World):
    first = durable.start(echo, "a", id="w")
    world.work()
    second = durable.start(echo, "b", id="w", id_reuse_policy="allow_duplicate")
    assert durable.get_handle("w").describe().run_id == second.run_id
    assert durable.get_handle("w", first.run_id).describe().status is RunStatus.COMPLETED
    assert first.result(timeout=5) == "a"


def test_an_unknown_run_is_not_found(durable: WorkflowClient):
    first = durable.start(echo, "a", id="w")
    for handle in (durable.get_handle("nobody"), durable.get_handle("w", "x"), durable.get_handle("x", first.run_id)):
        for look in (handle.describe, handle.history, handle.result):
            with pytest.raises(WorkflowNotFound):
                look()


# --- list -------------------------------------------------------------------------------------------


def test_a25_runs_are_listed_newest_first_in_pages(durable: WorkflowClient, world: World):
    for index in range(7):
        durable.start(echo, "a", id=f"w{index}")
        if index % 2:
            world.engine.sleep(1)
    seen, cursor = [], None
    while True:
        page = durable.list(limit=3, cursor=cursor)
        seen += [item.id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == [f"w{index}" for index in range(7)]
    assert [item.id for item in durable.list().items] == seen
    created = [item.created_at for item in durable.list().items]
    assert created == sorted(created, reverse=True)


def test_a25_runs_started_meanwhile_do_not_shift_the_pages(durable: WorkflowClient, world: World):
    for index in range(4):
        durable.start(echo, "a", id=f"w{index}")
        world.engine.sleep(1)
    first = durable.list(limit=2)
    durable.start(echo, "a", id="late")
    second = durable.list(limit=2, cursor=first.next_cursor)
    assert [item.id for item in first.items + second.items] == ["w3", "w2", "w1", "w0"]


def test_a25_filters_are_combined(durable: WorkflowClient, world: World):
    durable.start(echo, "a", id="done")
    durable.start(broken, id="blocked")
    durable.start(failing, "x", id="failed")
    world.work()
    durable.start(waiter, id="pending")

    def ids(**filters: Any) -> list[str]:
        return sorted(item.id for item in durable.list(**filters).items)

    assert ids(status="COMPLETED") == ["done"]
    assert ids(status=RunStatus.FAILED) == ["failed"]
    assert ids(attention="blocked") == ["blocked"]
    assert ids(attention="none", workflow_type="client.waiter") == ["pending"]
    assert ids(workflow_id="failed", status="COMPLETED") == []
    assert ids() == ["blocked", "done", "failed", "pending"]


CURSOR = base64.urlsafe_b64encode(json.dumps([1, 2]).encode()).decode()


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("status", "completed"),
        ("status", "DONE"),
        ("status", 5),
        ("status", ""),
        ("workflow_type", ""),
        ("workflow_type", 5),
        ("attention", "stuck"),
        ("attention", True),
        ("workflow_id", " "),
        ("limit", 0),
        ("limit", 1001),
        ("limit", "10"),
        ("limit", True),
        ("cursor", "nonsense"),
        ("cursor", ""),
        ("cursor", 5),
        ("cursor", CURSOR),
        ("cursor", "é"),
    ],
)
def test_a25_a_bad_filter_is_an_error_and_never_no_filter(durable: WorkflowClient, argument: str, value: Any):
    with pytest.raises(InvalidArgument) as caught:
        durable.list(**{argument: value})
    assert caught.value.argument == argument


# --- history ----------------------------------------------------------------------------------------


def test_a26_history_comes_in_pages_up_and_down(durable: WorkflowClient, world: World):
    handle = durable.start(Approval.run, 1, id="w")
    world.work()
    for name in ("ann", "bob"):
        handle.signal(Approval.approve, name)
    world.work()
    count = len(world.events())
    for descending in (False, True):
        seen: list[int] = []
        cursor = None
        while True:
            page = handle.history(cursor, 2, descending=descending)
            seen += [event.seq for event in page.events]
            cursor = page.next_cursor
            if cursor is None:
                break
            assert cursor == seen[-1]
        expected = list(range(1, count + 1))
        assert seen == (expected[::-1] if descending else expected)


def test_a26_a_cursor_at_the_end_answers_with_nothing(durable: WorkflowClient, world: World):
    handle = durable.start(echo, "a", id="w")
    world.work()
    count = len(world.events())
    assert handle.history(count).events == []
    assert handle.history(0, descending=True).events == []
    assert [event.seq for event in handle.history(descending=True, limit=1).events] == [count]


def test_events_are_shown_with_plain_values(durable: WorkflowClient, world: World):
    handle = durable.start(Approval.run, 1, id="w")
    world.work()
    handle.signal(Approval.approve, "ann", datetime(2026, 1, 1, tzinfo=UTC), signal_id="s1")
    world.work()
    events = {event.kind: event for event in handle.history().events}
    assert events["SignalReceived"].attributes == {"name": "approve", "signal_id": "s1"}
    assert events["SignalReceived"].payload == ["ann", "2026-01-01T00:00:00Z"]
    assert events["RunCompleted"].payload == "1 by ann"
    assert events["RunStarted"].at == now(world)


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("after", {"after": -1}),
        ("after", {"after": "1"}),
        ("after", {"after": True}),
        ("limit", {"limit": 0}),
        ("limit", {"limit": 1001}),
        ("limit", {"limit": 1.5}),
    ],
)
def test_a26_a_bad_page_is_refused_by_name(durable: WorkflowClient, argument: str, options: dict[str, Any]):
    with pytest.raises(InvalidArgument) as caught:
        durable.start(patient).history(**options)
    assert caught.value.argument == argument
