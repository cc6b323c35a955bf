"""Signals, queries, cancel and terminate through the client."""

from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.client import WorkflowClient
from orchestrator.errors import (
    InvalidArgument,
    QueryError,
    SignalConflict,
    UndeclaredSignal,
    WorkflowClosed,
    WorkflowNotFound,
)
from orchestrator.model.records import RunStatus
from tests.conformance.engine.world import World
from tests.unit.client.flows import Approval, BreaksLater, Broken, Leaver, Other, Parked, echo, waiter

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def test_a_signal_is_sent_by_method_or_by_name(durable: WorkflowClient):
    assert durable.start(Approval.run, 1, id="a").signal(Approval.approve, "ann").stored
    assert durable.get_handle("a").result(timeout=5) == "1 by ann"
    durable.start(Approval.run, 2, id="b").signal("approve", "bob")
    assert durable.get_handle("b").result(timeout=5) == "2 by bob"


def test_a_declared_signal_reaches_its_wait(durable: WorkflowClient):
    handle = durable.start(waiter)
    receipt = handle.signal("go", "home")
    assert receipt.run_id == handle.run_id
    assert handle.result(timeout=5) == "home"


def test_f03_the_receipt_tells_whether_this_call_stored_it(durable: WorkflowClient):
    handle = durable.start(waiter)
    first = handle.signal("go", "home", signal_id="once")
    again = handle.signal("go", "home", signal_id="once")
    assert (first.signal_id, first.stored, first.run_id) == ("once", True, handle.run_id)
    assert (again.signal_id, again.stored, again.run_id) == ("once", False, None)
    with pytest.raises(SignalConflict):
        handle.signal("go", "away", signal_id="once")


def test_a_signal_without_an_id_gets_a_fresh_one(durable: WorkflowClient):
    handle = durable.start(Approval.run, 1)
    assert handle.signal("approve", "ann").signal_id != handle.signal("approve", "ann").signal_id


def test_a_signal_to_a_closed_or_unknown_workflow_is_refused(durable: WorkflowClient):
    handle = durable.start(echo, "a", id="w")
    handle.result(timeout=5)
    with pytest.raises(WorkflowClosed):
        handle.signal("any")
    with pytest.raises(WorkflowNotFound, match="'nobody'"):
        durable.get_handle("nobody").signal("any")
    with pytest.raises(WorkflowNotFound):
        durable.get_handle("w", "0199-no-such-run").signal("any")


def test_a_signal_the_type_does_not_declare_is_refused(durable: WorkflowClient):
    with pytest.raises(UndeclaredSignal, match="'go', 'stop'"):
        durable.start(waiter).signal("leave")


BAD_SIGNALS: list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = [
    ("signal", "", (), {}),
    ("signal", " approve", ("ann",), {}),
    ("signal", 5, (), {}),
    ("signal", Other.approve, ("ann",), {}),
    ("signal", Approval.pending, (), {}),
    ("signal", Approval, (), {}),
    ("by", Approval.approve, (), {}),
    ("by", Approval.approve, (5,), {}),
    ("by", "approve", (True,), {}),
    ("arguments", Approval.approve, ("ann", None, 1), {}),
    ("at", Approval.approve, ("ann", "soon"), {}),
    ("signal_id", Approval.approve, ("ann",), {"signal_id": ""}),
    ("signal_id", Approval.approve, ("ann",), {"signal_id": "a\x00b"}),
    ("signal_id", Approval.approve, ("ann",), {"signal_id": 7}),
]


@pytest.mark.parametrize(("argument", "signal", "args", "options"), BAD_SIGNALS)
def test_a_bad_signal_is_refused_by_name_and_stores_nothing(
    durable: WorkflowClient, world: World, argument: str, signal: Any, args: tuple[Any, ...], options: dict[str, Any]
):
    handle = durable.start(Approval.run, 1, id="w")
    with pytest.raises(InvalidArgument) as caught:
        handle.signal(signal, *args, **options)
    assert caught.value.argument == argument
    assert world.inbox() == []
    # A handle that was looked up knows the type only by asking; it refuses the same.
    with pytest.raises(InvalidArgument):
        durable.get_handle("w").signal(signal, *args, **options)
    assert world.inbox() == []


@pytest.mark.parametrize("args", [(), (1, 2), (5,)])
def test_a_declared_signal_takes_exactly_its_value(durable: WorkflowClient, world: World, args: tuple[Any, ...]):
    with pytest.raises(InvalidArgument):
        durable.start(waiter, id="w").signal("go", *args)
    assert world.inbox() == []


def test_a_signal_declared_with_none_takes_no_value(durable: WorkflowClient):
    handle = durable.start(waiter)
    assert handle.signal("stop").stored
    with pytest.raises(InvalidArgument):
        handle.signal("stop", 1)


def test_a_blank_signal_name_or_id_is_refused_before_anything_is_read(durable: WorkflowClient):
    with pytest.raises(InvalidArgument):
        durable.get_handle("nobody").signal("")
    with pytest.raises(InvalidArgument):
        durable.get_handle("nobody").signal("go", signal_id=" ")


def test_a_query_answers_with_its_type_on_open_and_closed_runs(durable: WorkflowClient, world: World):
    handle = durable.start(Approval.run, 1, id="w")
    world.work()
    assert handle.query(Approval.pending) is True
    handle.signal(Approval.approve, "ann", AT)
    handle.result(timeout=5)
    assert handle.query(Approval.pending) is False
    assert handle.query(Approval.approved_at, "at") == ("at", AT)
    assert durable.get_handle("w").query("when", "at") == ("at", AT)
    assert durable.get_handle("w").with_plain_values().query("when") == ["", "2026-03-01T12:30:00Z"]


def test_a_query_writes_nothing(durable: WorkflowClient, world: World):
    handle = durable.start(Approval.run, 1, id="w")
    world.work()
    before = (world.run(), world.events(), world.inbox())
    handle.query(Approval.pending)
    assert (world.run(), world.events(), world.inbox()) == before


def test_a_query_works_on_a_terminated_and_on_a_cancelled_run(durable: WorkflowClient, world: World):
    for end in ("terminate", "cancel"):
        handle = durable.start(Approval.run, 1, id=end)
        world.work()
        getattr(handle, end)("enough")
        world.work()
        assert not handle.describe().status.is_open
        assert handle.query(Approval.pending) is True


def test_a_query_works_on_runs_that_ended_over_messages_that_no_code_saw(durable: WorkflowClient, world: World):
    # Accepted messages are recorded before the closing event, whatever ended the run.
    completed = durable.start(Approval.run, 1, id="completed")
    for name in ("ann", "bob", "cid"):
        completed.signal(Approval.approve, name)
    world.work()
    assert completed.result(timeout=5) == "1 by cid"
    assert completed.query(Approval.pending) is False
    parked = durable.start(Parked.run, id="parked")
    world.work()
    parked.signal("poke")
    parked.signal("poke")
    parked.terminate()
    world.work()
    assert [event.kind for event in parked.history().events][-3:] == [
        "SignalReceived",
        "SignalReceived",
        "RunTerminated",
    ]
    assert parked.query(Parked.pokes) in {0, 2}


def test_a_query_on_a_run_that_ended_before_it_began_says_so(durable: WorkflowClient, world: World):
    for end in ("cancel", "terminate"):
        handle = durable.start(Approval.run, 1, id=end)
        handle.signal(Approval.approve, "ann")
        getattr(handle, end)()
        world.work()
        assert not handle.describe().status.is_open
        with pytest.raises(QueryError, match="ended before it began"):
            handle.query(Approval.pending)


def test_a_query_on_a_run_that_left_its_unhandled_signals_behind(durable: WorkflowClient, world: World):
    handle = durable.start(Leaver.run)
    world.work()
    for _ in range(3):
        handle.signal("word", "x")
    world.work()
    assert handle.result(timeout=5) == "x"
    assert handle.query(Leaver.words) == ["x"]


def test_a_query_on_a_blocked_run_says_why(durable: WorkflowClient, world: World):
    handle = durable.start(Broken.run)
    world.work()
    assert handle.describe().attention == "blocked"
    with pytest.raises(QueryError):
        handle.query(Broken.state)
    later = durable.start(BreaksLater.run)
    world.work()
    later.signal("go")
    world.work()
    assert later.describe().attention == "blocked"
    # Its history goes as far as it was decided, and so does the answer.
    assert later.query(BreaksLater.state) == "waiting"


@pytest.mark.parametrize(
    ("query", "message"), [("nothing", "no query 'nothing'"), ("bad", "a failing query"), ("", "empty")]
)
def test_a_query_that_has_no_answer_says_why(durable: WorkflowClient, world: World, query: str, message: str):
    handle = durable.start(Approval.run, 1)
    world.work()
    with pytest.raises((QueryError, InvalidArgument), match=message):
        handle.query(query)


def test_a_query_of_another_class_or_with_wrong_arguments_is_refused_by_name(durable: WorkflowClient, world: World):
    handle = durable.start(Approval.run, 1)
    world.work()
    for query, args, argument in [
        (Other.pending, (), "query"),
        (Approval.approve, ("ann",), "query"),
        (Approval.pending, (1,), "arguments"),
        (Approval.approved_at, (5,), "prefix"),
    ]:
        with pytest.raises(InvalidArgument) as caught:
            handle.query(query, *args)  # type: ignore[arg-type]
        assert caught.value.argument == argument


def test_a_query_needs_the_code_and_a_run_that_has_begun(durable: WorkflowClient):
    durable.start("elsewhere", id="far", queue="q")
    with pytest.raises(QueryError, match="no code of workflow type 'elsewhere'"):
        durable.get_handle("far").query("anything")
    with pytest.raises(QueryError, match="not begun"):
        durable.start(Approval.run, 1).query(Approval.pending)
    with pytest.raises(WorkflowNotFound):
        durable.get_handle("nobody").query("anything")


def test_a30_cancel_and_terminate_reach_the_run_with_their_reason(durable: WorkflowClient, world: World):
    for verb, status in (("cancel", RunStatus.CANCELED), ("terminate", RunStatus.TERMINATED)):
        handle = durable.start(Approval.run, 1, id=verb)
        world.work()
        getattr(handle, verb)("no longer wanted\nreally")
        world.work()
        described = handle.describe()
        assert (described.status, described.close_reason) == (status, "no longer wanted\nreally")
        with pytest.raises(WorkflowClosed):
            getattr(handle, verb)()


@pytest.mark.parametrize("verb", ["cancel", "terminate"])
@pytest.mark.parametrize("reason", [5, None, "\x1b[2J", "\ud800", "x" * 10_001])
def test_a_bad_reason_is_refused_by_name(durable: WorkflowClient, verb: str, reason: Any):
    handle = durable.start(Approval.run, 1)
    with pytest.raises(InvalidArgument) as caught:
        getattr(handle, verb)(reason)
    assert caught.value.argument == "reason"
    assert handle.describe().pending_messages == 0
