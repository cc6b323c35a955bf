"""Time in the environment: it stands still, skips, or is moved by hand."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.errors import InvalidArgument
from orchestrator.testing import WorkflowEnvironment
from tests.unit.testing import shop


def quickest(action: Callable[[], object], tries: int = 5) -> float:
    """Returns the seconds of the fastest try, as this thread spent them: others' work on the machine is not counted."""
    spent = []
    for _ in range(tries):
        before = time.thread_time()
        action()
        spent.append(time.thread_time() - before)
    return min(spent)


def test_three_days_of_sleep_take_less_than_a_tenth_of_a_second_with_the_environment_itself():
    def whole_test() -> None:
        with WorkflowEnvironment() as env:
            assert env.run(shop.nap, 3) == "3 days, 0:00:00"

    assert quickest(whole_test) < 0.1


def test_an_environment_is_made_in_a_few_milliseconds():
    assert quickest(lambda: WorkflowEnvironment().close()) < 0.02


def test_the_clock_begins_where_it_is_told_and_moves_as_far_as_the_workflow_sleeps():
    began = datetime(2024, 2, 28, 23, 59, tzinfo=UTC)
    with WorkflowEnvironment(start_time=began) as env:
        assert env.now == began
        env.run(shop.nap, 3)
        assert env.now == began + timedelta(days=3)


def test_a_naive_start_time_is_refused():
    with pytest.raises(InvalidArgument, match="start_time"):
        WorkflowEnvironment(start_time=datetime(2024, 1, 1))


def test_time_stands_still_until_a_result_is_asked_for(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    before = env.now
    handle = env.start(shop.nap, 1)
    assert handle.describe().timers[0].due_at == before + timedelta(days=1)
    assert env.now == before
    handle.result()
    assert env.now == before + timedelta(days=1)


def test_advance_runs_what_falls_due_on_the_way_and_no_more(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    before, short, long = env.now, env.start(shop.nap, 1), env.start(shop.nap, 3)
    env.advance(timedelta(days=2))
    assert env.now == before + timedelta(days=2)
    assert (short.describe().status, long.describe().status) == ("COMPLETED", "RUNNING")
    assert short.describe().closed_at == before + timedelta(days=1)


def test_a_timer_does_not_fire_a_microsecond_early(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    handle = env.start(shop.nap, 1)
    env.advance(timedelta(days=1) - timedelta(microseconds=1))
    assert handle.describe().is_open
    env.advance(timedelta(microseconds=1))
    assert not handle.describe().is_open


@pytest.mark.parametrize("wrong", [timedelta(seconds=-1), -1, float("nan"), "1", None, True])
def test_a_wrong_duration_is_refused_and_time_stays(workflow_environment: WorkflowEnvironment, wrong: object):
    env = workflow_environment
    before = env.now
    with pytest.raises(InvalidArgument, match="duration"):
        env.advance(wrong)  # type: ignore[arg-type]
    assert env.now == before


def test_what_is_noted_for_later_happens_in_its_order(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    seen: list[tuple[str, timedelta]] = []
    before = env.now
    for hours, name in [(2, "b"), (1, "a"), (2, "c")]:
        env.call_later(timedelta(hours=hours), lambda name=name: seen.append((name, env.now - before)))
    env.run(shop.nap, 1)
    assert seen == [("a", timedelta(hours=1)), ("b", timedelta(hours=2)), ("c", timedelta(hours=2))]


def test_an_answer_noted_for_later_reaches_the_workflow_that_waits(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    handle = env.start(shop.Approval.run, 500)
    env.call_later(timedelta(days=2, hours=12), lambda: handle.signal(shop.Approval.approve, "ann"))
    before = env.now
    assert handle.result() == "500 approved by ann"
    assert env.now - before == timedelta(days=2, hours=12)


def test_what_a_noted_action_raises_ends_the_test(workflow_environment: WorkflowEnvironment):
    env = workflow_environment

    def fail() -> None:
        raise AssertionError("the shop is closed on Sundays")

    env.call_later(60, fail)
    with pytest.raises(AssertionError, match="Sundays"):
        env.run(shop.nap, 1)


def test_retry_delays_cost_no_real_time_but_pass_on_the_clock(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, side_effect=[shop.GatewayDown("a"), shop.GatewayDown("b"), shop.GatewayDown("c"), "paid"])
    assert env.run(shop.pay, "42", 999) == "paid"
    first, second, third, fourth = env.calls(shop.charge)
    assert [call.attempt for call in (first, second, third, fourth)] == [1, 2, 3, 4]
    # 1 s, 2 s, 4 s, each made shorter by at most a tenth.
    for earlier, later, delay in [(first, second, 1), (second, third, 2), (third, fourth, 4)]:
        assert 0.9 * delay <= (later.at - earlier.at).total_seconds() <= delay


def test_hourly_work_of_a_day_is_run_hour_by_hour(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    handle = env.start(shop.for_ever)
    env.advance(timedelta(days=1))
    fired = [event for event in env.history(handle) if event.kind == "TimerFired"]
    assert len(fired) == 24
    assert [event.at for event in fired] == sorted(event.at for event in fired)
