"""Starting, asking and ending: the client's own calls on the environment's engine."""

from datetime import timedelta

import pytest

from orchestrator.engine.observers import Observer, RunNotice
from orchestrator.errors import (
    EnvironmentStuck,
    Unavailable,
    UndeclaredSignal,
    UnknownActivity,
    WorkflowBlocked,
    WorkflowCanceled,
    WorkflowClosed,
    WorkflowFailed,
    WorkflowTerminated,
)
from orchestrator.testing import WorkflowEnvironment
from tests.unit.testing import shop


def test_a_whole_order_runs_with_real_activities(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    handle = env.start(shop.fulfil, "42", 999, id="order-42")
    assert [call.args for call in env.calls(shop.charge)] == [("42", 999)]
    handle.signal("address", "Main St 1")
    assert handle.result() == "sent 42 to Main St 1"
    assert env.result(handle) == "sent 42 to Main St 1"


def test_starting_again_with_the_same_id_gives_the_same_run(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    first, second = (env.start(shop.fulfil, "42", 999, id="order-42") for _ in range(2))
    assert first.run_id == second.run_id
    assert len(env.calls(shop.charge)) == 1


def test_a_query_is_answered_between_signals(workflow_environment: WorkflowEnvironment):
    handle = workflow_environment.start(shop.Approval.run, 500, id="approval-7")
    assert handle.query(shop.Approval.pending) is True
    handle.signal(shop.Approval.approve, "ann")
    assert handle.query(shop.Approval.pending) is False
    assert handle.result() == "500 approved by ann"


def test_an_undeclared_signal_and_one_to_a_closed_run_are_refused(workflow_environment: WorkflowEnvironment):
    handle = workflow_environment.start(shop.Door.run)
    with pytest.raises(UndeclaredSignal, match="'opne'"):
        handle.signal("opne")
    handle.signal(shop.Door.open)
    with pytest.raises(WorkflowClosed):
        handle.signal(shop.Door.open)


def test_a_timed_out_wait_goes_the_time_out_s_way(workflow_environment: WorkflowEnvironment):
    with pytest.raises(WorkflowFailed, match="TimeoutError"):
        workflow_environment.run(shop.fulfil, "42", 999)


def test_a_cancelled_run_ends_cancelled_with_its_reason(workflow_environment: WorkflowEnvironment):
    handle = workflow_environment.start(shop.Door.run)
    handle.cancel("moved out")
    with pytest.raises(WorkflowCanceled, match="moved out"):
        handle.result()


def test_a_terminated_run_ends_at_once(workflow_environment: WorkflowEnvironment):
    handle = workflow_environment.start(shop.broken)
    handle.terminate("not worth fixing")
    with pytest.raises(WorkflowTerminated, match="not worth fixing"):
        handle.result()


def test_a_blocked_run_raises_at_once_and_says_why(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    before = env.now
    with pytest.raises(WorkflowBlocked, match=r"NameError.*nowhere"):
        env.run(shop.broken)
    assert env.now == before


def test_a_blocked_run_that_is_waited_for_is_told_to_go_nowhere(workflow_environment: WorkflowEnvironment):
    handle = workflow_environment.start(shop.broken, id="b-1")
    with pytest.raises(EnvironmentStuck, match=r"'b-1' is blocked: .*NameError"):
        handle.result(on_blocked="wait")


def test_a_blocked_run_goes_on_once_its_code_is_fixed_and_time_passes(
    workflow_environment: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch
):
    env = workflow_environment
    handle = env.start(shop.broken)
    assert handle.describe().attention == "blocked"
    monkeypatch.setattr(shop, "nowhere", lambda: None, raising=False)
    env.advance(timedelta(minutes=1))
    assert handle.result() is None


def test_a_wait_for_a_signal_that_nobody_sends_is_named_instead_of_hanging(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    handle = env.start(shop.Door.run, id="door-1")
    with pytest.raises(EnvironmentStuck, match=r"kit.Door 'door-1' waits for .* signals \('open'\)"):
        handle.result()
    handle.signal(shop.Door.open)
    assert handle.result() == "open"


def test_a_named_wait_is_told_by_the_signal_s_name(workflow_environment: WorkflowEnvironment):
    handle = workflow_environment.start(shop.fulfil, "42", 1, id="o-1")
    with pytest.raises(TimeoutError, match="o-1"):
        handle.result(timeout=60)
    assert [wait.name for wait in handle.describe().waits] == ["address"]


def test_a_time_out_of_the_wait_passes_on_the_clock_exactly(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    before, handle = env.now, env.start(shop.nap, 3)
    with pytest.raises(TimeoutError):
        handle.result(timeout=timedelta(minutes=1))
    assert timedelta(0) <= env.now - before - timedelta(minutes=1) < timedelta(milliseconds=1)
    assert handle.result(timeout=timedelta(days=3)) == "3 days, 0:00:00"


def test_a_zero_time_out_looks_once(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    before, handle = env.now, env.start(shop.nap, 3)
    with pytest.raises(TimeoutError):
        handle.result(timeout=0)
    assert env.now == before


def test_a_time_out_of_a_wait_for_nothing_is_a_time_out(workflow_environment: WorkflowEnvironment):
    with pytest.raises(TimeoutError):
        workflow_environment.run(shop.Door.run, timeout=5)


def test_a_workflow_that_goes_on_for_ever_ends_its_test():
    with WorkflowEnvironment(step_limit=50) as env, pytest.raises(EnvironmentStuck, match="step_limit"):
        env.run(shop.for_ever)


def test_an_activity_that_is_nowhere_defined_is_named_with_what_to_do(workflow_environment: WorkflowEnvironment):
    with pytest.raises(UnknownActivity, match=r'"kit\.elsewhere", returns='):
        workflow_environment.run(shop.by_name, 1)


def test_several_workflows_run_side_by_side(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    naps = [env.start(shop.nap, days, id=f"nap-{days}") for days in (3, 1, 2)]
    assert naps[0].result() == "3 days, 0:00:00"
    assert [run.status for run in env.list().items] == ["COMPLETED"] * 3
    assert {run.id for run in env.list(workflow_type="kit.nap").items} == {"nap-1", "nap-2", "nap-3"}


def test_the_history_of_a_run_is_returned_whole(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    handle = env.start(shop.nap, 1)
    handle.result()
    events = env.history(handle)
    assert [event.kind for event in events] == ["RunStarted", "TimerStarted", "TimerFired", "RunCompleted"]
    assert [event.seq for event in events] == [1, 2, 3, 4]
    assert events[-1].payload == "1 day, 0:00:00"


def test_a_history_longer_than_a_page_is_returned_whole(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    handle = env.start(shop.dice, 1_200)
    assert [event.seq for event in env.history(handle)] == list(range(1, 1_203))


def test_environments_know_nothing_of_each_other():
    with WorkflowEnvironment() as one, WorkflowEnvironment() as other:
        one.start(shop.nap, 1, id="nap")
        assert other.list().items == []
        assert other.start(shop.nap, 2, id="nap").result() == "2 days, 0:00:00"
        assert one.get_handle("nap").result() == "1 day, 0:00:00"


def test_a_start_may_replace_the_open_run_of_its_id(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    first = env.start(shop.nap, 1, id="nap")
    second = env.start(shop.nap, 2, id="nap", id_reuse_policy="terminate_existing")
    assert second.result() == "2 days, 0:00:00"
    with pytest.raises(WorkflowTerminated):
        first.result()


def test_observers_are_told_what_happens():
    class Ends(Observer):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def run_closed(self, notice: RunNotice) -> None:
            self.seen.append(f"{notice.workflow_id} {notice.status}")

    ends = Ends()
    with WorkflowEnvironment(observers=[ends]) as env:
        env.run(shop.nap, 1, id="nap")
    assert ends.seen == ["nap COMPLETED"]


def test_a_closed_environment_says_so():
    with WorkflowEnvironment() as env:
        handle = env.start(shop.nap, 1)
    with pytest.raises(Unavailable, match="closed"):
        handle.result()
