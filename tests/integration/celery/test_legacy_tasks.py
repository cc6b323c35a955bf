"""Existing Celery tasks in workflows, untouched: their own rules hold, and their end is always reported."""

import time

import pytest

from tests.integration.celery.conftest import Shop


@pytest.fixture(params=["prefork", "threads"])
def pool(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_self_retry_goes_on_as_the_same_attempt(shop: Shop, pool: str):
    shop.worker(pool=pool)
    assert shop.run("it_one", "lg_retry", ["retry", 2]) == 2
    assert shop.lines("retry") == ["0", "1", "2"]


def test_autoretry_for_is_celerys_own_and_its_last_error_is_the_activitys(shop: Shop, pool: str):
    shop.worker(pool=pool)
    assert shop.run("it_one", "lg_autoretry", ["two", 2]) == "done"
    answer = shop.run("it_one", "lg_autoretry", ["nine", 9])
    assert (answer["error"], answer["attempt"], len(shop.lines("nine"))) == ("OSError", 1, 4)


def test_a_retry_may_change_its_arguments(shop: Shop):
    shop.worker()
    assert shop.run("it_one", "lg_changes_arguments", [0]) == 3


def test_a_waiting_retry_outlives_the_process_that_asked_for_it(shop: Shop):
    shop.worker(args=["--max-tasks-per-child", "1"])
    assert shop.run("it_one", "lg_retry", ["retry", 3]) == 3


def test_rate_limits_hold(shop: Shop):
    shop.worker(concurrency=4)
    shop.run("it_many", "lg_limited", ["limited"], 10)
    times = sorted(float(line) for line in shop.lines("limited"))
    assert len(times) == 10
    assert times[-1] - times[0] > 0.3


def test_the_hard_time_limit_is_a_timeout_of_the_activity(shop: Shop):
    shop.worker()
    began = time.monotonic()
    answer = shop.run("it_one", "lg_hard_limit", ["hard"])
    assert (answer["cause"], answer["attempt"]) == ("ActivityTimeout", 1)
    assert time.monotonic() - began < 15
    assert len(shop.lines("hard")) == 1


def test_the_soft_time_limit_is_an_error_of_the_task(shop: Shop):
    shop.worker()
    assert shop.run("it_one", "lg_soft_limit", [])["error"] == "SoftTimeLimitExceeded"


def test_pydantic_tasks_get_models_and_return_them(shop: Shop):
    shop.worker()
    assert shop.run("it_one", "lg_pydantic", [{"cents": 5}]) == {"cents": 6, "currency": "EUR"}


def test_values_arrive_as_celerys_own_json_brings_them(shop: Shop):
    shop.worker()
    assert shop.run("it_typed") == ["datetime", "Decimal"]


def test_a_signature_with_its_options_is_an_activity(shop: Shop):
    shop.worker(queues=["celery"])
    shop.worker(queues=["slow"])
    assert shop.run("it_signature", 3) == 8


def test_a_task_is_called_by_name(shop: Shop):
    shop.worker()
    assert shop.run("it_by_name", "lg_shared", [1, 2]) == 3


def test_task_hooks_of_the_teams_own_base_run(shop: Shop):
    shop.worker()
    assert shop.run("it_one", "lg_hooked", ["hooked"]) == "hooked"
    assert shop.wait_for_effect("hooked.hook") == ["hooked"]


def test_an_early_acknowledged_task_whose_process_dies_is_reported_lost(shop: Shop):
    shop.worker()
    answer = shop.run("it_one", "lg_dies", ["dies"])
    assert (answer["error"], answer["attempt"], len(shop.lines("dies"))) == ("WorkerLost", 1, 1)


def test_a_task_that_celery_runs_again_after_its_process_died_does_so(shop: Shop):
    shop.worker()
    assert shop.run("it_one", "lg_dies_once", ["dies"]) == "survived"


def test_a_task_that_ignores_its_outcome_fails_saying_so(shop: Shop):
    shop.worker()
    answer = shop.run("it_one", "lg_ignores", [])
    assert answer["error"] == "Ignore"
    assert "has no outcome" in answer["text"]


def test_a_rejected_message_that_comes_back_is_run(shop: Shop):
    shop.worker()
    assert shop.run("it_one", "lg_rejects_once", ["rejects"]) == "second time"
