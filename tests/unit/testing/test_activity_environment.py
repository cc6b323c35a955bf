"""One activity by itself."""

import asyncio
import dataclasses
from decimal import Decimal
from typing import Any

import pytest

from orchestrator import activity
from orchestrator.errors import Cancelled, InvalidArgument, NotInActivity, PayloadError
from orchestrator.testing import INFO, ActivityEnvironment
from tests.unit.testing import shop


def test_an_activity_runs_with_its_arguments(activity_environment: ActivityEnvironment):
    assert activity_environment.run(shop.charge, "42", 999) == "charged 999 for 42"
    assert activity_environment.run(shop.charge, cents=1, order_id="43") == "charged 1 for 43"


def test_an_async_activity_runs_blocking_or_awaited(activity_environment: ActivityEnvironment):
    assert activity_environment.run(shop.pack, "42") == shop.Parcel("42", Decimal(1))
    assert asyncio.run(activity_environment.arun(shop.pack, "42", Decimal("2.5"))) == shop.Parcel("42", Decimal("2.5"))


def test_an_awaited_activity_runs_on_the_caller_s_own_loop(activity_environment: ActivityEnvironment):
    async def story() -> bool:
        ours = asyncio.get_running_loop()

        async def loop_is_ours() -> bool:
            return asyncio.get_running_loop() is ours

        return await activity_environment.arun(loop_is_ours)

    assert asyncio.run(story())


def test_a_plain_function_and_a_celery_task_run_too(activity_environment: ActivityEnvironment):
    def half(value: int) -> float:
        return value / 2

    assert activity_environment.run(half, 3) == 1.5
    assert activity_environment.run(shop.legacy, 1) == 2
    assert activity_environment.run(activity.of(shop.legacy), 1) == 2
    assert activity_environment.run(activity.of(shop.stubborn), 0) == 0


def test_info_tells_the_attempt(activity_environment: ActivityEnvironment):
    def who() -> list[Any]:
        info = activity.info()
        return [info.activity, info.attempt, info.idempotency_key, info.workflow_id, activity.in_workflow()]

    assert activity_environment.run(who) == ["who", 1, INFO.idempotency_key, "test-workflow", True]
    environment = ActivityEnvironment(info=dataclasses.replace(INFO, workflow_id="order-42"), attempt=3)
    assert environment.run(who) == ["who", 3, INFO.idempotency_key, "order-42", True]


def test_outside_of_the_environment_there_is_no_attempt(activity_environment: ActivityEnvironment):
    activity_environment.run(shop.charge, "42", 1)
    with pytest.raises(NotInActivity, match="ActivityEnvironment"):
        activity.info()


def test_heartbeats_are_recorded(activity_environment: ActivityEnvironment):
    activity_environment.run(shop.crawl, 3)
    assert activity_environment.heartbeats == [(1,), (2,), (3,)]


def test_the_details_of_an_earlier_attempt_are_there():
    environment = ActivityEnvironment(attempt=2, heartbeat_details=[2])
    assert environment.run(shop.crawl, 3) == 2
    assert environment.heartbeats == [(3,)]


def test_details_that_can_t_be_stored_are_refused(activity_environment: ActivityEnvironment):
    def beat() -> None:
        activity.heartbeat(object())

    with pytest.raises(PayloadError):
        activity_environment.run(beat)
    assert activity_environment.heartbeats == []


def test_after_cancel_the_next_heartbeat_raises():
    environment = ActivityEnvironment(on_heartbeat=lambda page: environment.cancel("enough") if page == 2 else None)
    with pytest.raises(Cancelled, match="enough"):
        environment.run(shop.crawl, 10)
    assert environment.heartbeats == [(1,), (2,)]


def test_a_cancellation_before_the_run_is_seen_by_its_first_heartbeat(activity_environment: ActivityEnvironment):
    activity_environment.cancel()
    with pytest.raises(Cancelled):
        activity_environment.run(shop.crawl, 10)
    assert activity_environment.heartbeats == [(1,)]


def test_an_activity_that_ignores_its_cancellation_goes_on(activity_environment: ActivityEnvironment):
    def stubborn() -> bool:
        with pytest.raises(Cancelled):
            activity.heartbeat()
        return activity.is_cancelled()

    activity_environment.cancel()
    assert activity_environment.run(stubborn) is True


def test_an_async_activity_is_cancelled_from_another_task():
    async def story() -> list[tuple[Any, ...]]:
        environment = ActivityEnvironment()

        async def beating() -> None:
            while True:
                activity.heartbeat("alive")
                await asyncio.sleep(0)

        running = asyncio.create_task(environment.arun(beating))
        await asyncio.sleep(0.01)
        environment.cancel()
        with pytest.raises(Cancelled):
            await running
        return environment.heartbeats

    assert asyncio.run(story())[0] == ("alive",)


def test_a_worker_that_shuts_down_is_noticed_here_and_nowhere_else(activity_environment: ActivityEnvironment):
    assert activity_environment.run(activity.is_worker_shutting_down) is False
    activity_environment.shut_down_worker()
    assert activity_environment.run(activity.is_worker_shutting_down) is True
    assert ActivityEnvironment().run(activity.is_worker_shutting_down) is False
    assert activity.is_worker_shutting_down() is False


def test_what_the_activity_raises_comes_out_unchanged(activity_environment: ActivityEnvironment):
    def fail() -> None:
        raise shop.CardDeclined("no")

    with pytest.raises(shop.CardDeclined, match="no"):
        activity_environment.run(fail)


def test_arguments_and_results_take_the_way_through_storage(activity_environment: ActivityEnvironment):
    given = shop.Parcel("42", Decimal("1.50"))

    def same(parcel: shop.Parcel) -> bool:
        return parcel is given

    def nonsense() -> Any:
        return object()

    assert activity_environment.run(same, given) is False
    with pytest.raises(PayloadError, match="result"):
        activity_environment.run(nonsense)
    with pytest.raises(PayloadError, match="cents"):
        activity_environment.run(shop.charge, "42", "999")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="cents"):
        activity_environment.run(shop.charge, "42")  # type: ignore[call-arg]


@pytest.mark.parametrize("wrong", [None, 5, "charge", shop.Approval])
def test_something_that_is_no_activity_is_refused(activity_environment: ActivityEnvironment, wrong: Any):
    with pytest.raises(InvalidArgument, match="activity"):
        activity_environment.run(wrong)


@pytest.mark.parametrize("wrong", [0, -1, True, "1", 1.5])
def test_a_wrong_attempt_is_refused(wrong: Any):
    with pytest.raises(InvalidArgument, match="attempt"):
        ActivityEnvironment(attempt=wrong)
