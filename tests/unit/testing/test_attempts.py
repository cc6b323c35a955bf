"""Attempts on the environment's clock: heartbeats, time-outs, lost workers, cancellation."""

import time
from datetime import timedelta
from decimal import Decimal

import pytest

from orchestrator import activity
from orchestrator.errors import Cancelled, WorkerLost, WorkflowFailed
from orchestrator.testing import WorkflowEnvironment
from tests.unit.testing import shop


def test_a_stub_that_lets_time_pass_runs_into_start_to_close(workflow_environment: WorkflowEnvironment):
    env = workflow_environment

    def slow_once(order_id: str, cents: int) -> str:
        if activity.info().attempt == 1:
            env.advance(timedelta(minutes=2))
        return f"attempt {activity.info().attempt}"

    env.stub(shop.charge, side_effect=slow_once)
    assert env.run(shop.pay_or_not, "42") == "attempt 2"
    assert [call.attempt for call in env.calls(shop.charge)] == [1, 2]


def test_an_attempt_that_always_takes_too_long_times_out_for_good(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, returns="too late", takes=timedelta(minutes=2))
    assert env.run(shop.pay_or_not, "42") == "ActivityTimeout after 10"


def test_the_workflow_goes_on_while_an_activity_runs_over_its_time(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, returns="too late", takes=timedelta(minutes=4))
    assert env.run(shop.pay_in_time, "42") == "gave up at 00:01:00"


def test_activities_that_take_time_run_side_by_side(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, returns="paid", takes=30)
    env.stub(shop.pack, returns=shop.Parcel("42", Decimal(1)), takes=20)
    assert env.run(shop.both, "42") == ["pack 00:00:20", "charge 00:00:30"]


def test_other_activities_run_while_one_lets_time_pass(workflow_environment: WorkflowEnvironment):
    env = workflow_environment

    def slow(order_id: str, cents: int) -> str:
        env.advance(60)
        return "paid"

    env.stub(shop.charge, side_effect=slow)
    assert env.run(shop.both, "42") == ["pack 00:00:00", "charge 00:01:00"]


def test_heartbeat_details_reach_the_next_attempt(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    seen: list[int | None] = []

    def crawl(pages: int) -> int:
        seen.append(activity.info().heartbeat_details(int))
        for page in range(pages):
            activity.heartbeat(page)
            if page == 2 and activity.info().attempt == 1:
                raise shop.GatewayDown
        return pages

    env.stub(shop.crawl, side_effect=crawl)
    assert env.run(shop.crawling, 5) == 5
    assert seen == [None, 2]


def test_an_attempt_that_stays_silent_too_long_is_retried(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    began = env.now

    def silent_once(pages: int) -> int:
        activity.heartbeat(pages)
        if activity.info().attempt == 1:
            env.advance(45)
        return activity.info().heartbeat_details(int) or 0

    env.stub(shop.crawl, side_effect=silent_once)
    assert env.run(shop.crawling, 7) == 7
    first, second = env.calls(shop.crawl)
    assert first.at == began
    assert 30 < (second.at - began).total_seconds() <= 32


def test_regular_heartbeats_keep_a_long_attempt_alive(workflow_environment: WorkflowEnvironment):
    env = workflow_environment

    def patient(pages: int) -> int:
        for page in range(pages):
            activity.heartbeat(page)
            env.advance(25)
        return pages

    env.stub(shop.crawl, side_effect=patient)
    assert env.run(shop.crawling, 10) == 10
    assert len(env.calls(shop.crawl)) == 1


def test_a_cancelled_workflow_s_activity_is_told_by_its_next_heartbeat(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    told: list[str] = []

    def long(pages: int) -> int:
        try:
            for page in range(pages):
                activity.heartbeat(page)
                if page == 3:
                    env.get_handle("crawl-1").cancel()
        except Cancelled as error:
            told.append(f"page {page}: {error}")
            raise
        return pages

    env.stub(shop.crawl, side_effect=long)
    handle = env.start(shop.crawling, 10, id="crawl-1")
    assert handle.describe().status == "CANCELED"
    assert told[0].startswith("page 4: ")


def test_time_sleep_in_an_activity_may_be_replaced_by_the_environment_s(
    workflow_environment: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch
):
    env = workflow_environment
    before = env.now
    monkeypatch.setattr(time, "sleep", env.sleep)

    def polling(order_id: str, cents: int) -> str:
        for _ in range(10):
            time.sleep(5)
        return "ready"

    env.stub(shop.charge, side_effect=polling)
    assert env.run(shop.pay, "42", 1) == "ready"
    assert env.now - before == timedelta(seconds=50)


def test_a_lost_worker_is_followed_by_another_attempt_at_once(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    before = env.now
    env.stub(shop.charge, side_effect=[WorkerLost(), WorkerLost(), "paid"])
    assert env.run(shop.pay, "42", 1) == "paid"
    assert env.now == before


def test_workers_lost_three_times_in_a_row_fail_the_activity(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, raises=WorkerLost)
    with pytest.raises(WorkflowFailed, match="WorkerLost"):
        env.run(shop.pay, "42", 1)
    assert len(env.calls(shop.charge)) == 3


def test_an_activity_may_use_the_client_itself(workflow_environment: WorkflowEnvironment):
    env = workflow_environment

    def charge_by_workflow(order_id: str, cents: int) -> str:
        return env.run(shop.blink)

    env.stub(shop.charge, side_effect=charge_by_workflow)
    assert env.run(shop.pay, "42", 1) == "blinked"
    assert len(env.calls(shop.charge)) == 1


def test_real_activities_see_the_facts_of_their_attempt(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    infos: list[activity.ActivityInfo] = []

    def effect(order_id: str, cents: int) -> str:
        infos.append(activity.info())
        return ""

    env.stub(shop.charge, side_effect=effect)
    handle = env.start(shop.pay, "42", 1, id="order-42")
    (info,) = infos
    assert (info.activity, info.attempt, info.workflow_id, info.run_id) == ("kit.charge", 1, "order-42", handle.run_id)
    assert info.started_at == env.now
    assert info.start_to_close_deadline == env.now + timedelta(seconds=300)
    assert "order-42" in info.task_id
