"""What is running when its process dies runs again, counted, and nothing of it is lost."""

import os
import signal

import pytest

from tests.integration.celery.conftest import Shop


@pytest.mark.parametrize("how", ["kill", "exit", "sysexit"])
def test_an_activity_whose_child_dies_runs_again(shop: Shop, how: str):
    shop.worker()
    assert shop.run("it_one", "it_dies", ["dies", how, 1]) == "attempt 2"
    first, second = shop.lines("dies")
    assert first.split()[1] != second.split()[1]


def test_an_activity_whose_child_dies_runs_again_over_redis(redis_shop: Shop):
    redis_shop.worker()
    assert redis_shop.run("it_one", "it_dies", ["dies", "kill", 1]) == "attempt 2"


def test_an_activity_whose_whole_worker_is_killed_is_recovered_by_another(shop: Shop):
    shop.worker(concurrency=1)
    handle = shop.start("it_one", "it_dies", ["dies", "parent", 1])
    shop.wait_for_effect("dies")
    shop.worker()
    assert handle.result(timeout=40) == "attempt 2"


def test_over_redis_a_killed_worker_is_noticed_long_before_the_visibility_timeout(redis_shop: Shop):
    redis_shop.worker(concurrency=1)
    handle = redis_shop.start("it_one", "it_dies", ["dies", "parent", 1])
    redis_shop.wait_for_effect("dies")
    redis_shop.worker()
    assert handle.result(timeout=40) == "attempt 2"


def test_an_activity_that_always_kills_its_worker_starts_three_times_and_fails_beside_healthy_ones(shop: Shop):
    shop.worker(concurrency=3)
    poison = shop.start("it_one", "it_dies", ["poison", "kill", 99])
    healthy = [shop.start("it_three_steps", number) for number in range(10)]
    answer = poison.result(timeout=60)
    assert (answer["error"], answer["cause"]) == ("WorkerLost", "WorkerLost")
    assert len(shop.lines("poison")) == 3
    assert all(handle.result(timeout=40) for handle in healthy)


def test_a_decision_goes_on_after_its_worker_was_killed(shop: Shop):
    worker = shop.worker(concurrency=1)
    os.kill(worker.pid, signal.SIGSTOP)
    handle = shop.start("it_three_steps", 4)
    worker.kill()
    shop.worker()
    assert handle.result(timeout=40) == [5, 10, 20]


def test_heartbeat_details_reach_the_attempt_after_a_lost_one(shop: Shop):
    shop.worker()
    assert shop.run("it_one", "it_counts_heartbeats", ["beats"]) == 7


def test_start_to_close_ends_the_attempt_and_frees_its_process(shop: Shop):
    shop.worker(concurrency=1)
    assert shop.run("it_one", "it_slow_at_first", ["slow"]) == "new"
    assert len(shop.lines("slow")) == 2
    assert shop.lines("slow.late") == []


def test_in_a_pool_of_threads_the_late_result_of_a_timed_out_attempt_is_refused(shop: Shop):
    worker = shop.worker(pool="threads", concurrency=2)
    assert shop.run("it_one", "it_slow_at_first", ["slow"]) == "new"
    shop.wait_for_effect("slow.late")
    worker.terminate()
    assert "came too late" in worker.logs()


def test_a_cancelled_activity_is_told_at_its_heartbeat(shop: Shop):
    shop.worker()
    handle = shop.start("it_cancels", "watch")
    shop.wait_for_effect("watch")
    handle.signal("stop")
    assert handle.result(timeout=20) == "cancelled"
    shop.wait_for_effect("watch.cancelled")
