"""Activities on a real worker: retries, facts, results that can't be stored, what Flower would show."""

import re

from tests.integration.celery.conftest import Shop


def test_failed_attempts_are_retried_by_the_policy(shop: Shop):
    shop.worker()
    assert shop.run("it_one", "it_flaky", ["flaky"]) == "attempt 3"
    assert shop.lines("flaky") == ["1", "2", "3"]


def test_an_activity_may_ask_celery_for_a_retry_with_arguments_that_only_we_can_store(shop: Shop):
    shop.worker()
    assert shop.run("it_asks", "asks") == 5
    assert shop.lines("asks") == ["cents=5 currency='EUR'"] * 3


def test_an_activity_that_may_outlast_the_brokers_patience_is_acknowledged_before(redis_shop: Shop):
    redis_shop.worker(concurrency=2, env={"VISIBILITY_TIMEOUT": "2"})
    assert redis_shop.run("it_one", "it_outlasts_the_broker", ["long"]) == 1


def test_an_activity_knows_who_it_is(shop: Shop):
    shop.worker()
    handle = shop.start("it_one", "it_facts", [])
    facts = handle.result(timeout=30)
    assert facts == {
        "in_workflow": True,
        "workflow_id": handle.id,
        "workflow_type": "it_one",
        "number": 1,
        "attempt": 1,
        "key": f"{handle.run_id}/1",
        "task_id": f"{handle.id}/{handle.run_id[-12:]}/it_facts:1.1",
    }


def test_a_result_that_cannot_be_stored_fails_the_activity_naming_its_place(shop: Shop):
    shop.worker()
    answer = shop.run("it_one", "it_unstorable", [])
    assert (answer["error"], answer["attempt"]) == ("PayloadError", 1)
    assert "result.answer.deep" in answer["text"]


def test_the_same_tasks_still_work_without_a_workflow(shop: Shop):
    from celery import Celery

    worker = shop.worker()
    app = Celery(broker=shop.broker, set_as_current=False)
    app.send_task("it_flaky", args=("plain",), task_id="plain-1")
    app.send_task("lg_shared", args=(1, 2))
    app.send_task("it_later", args=({"cents": 1},), task_id="plain-2")
    shop.wait_for_effect("plain")
    assert shop.run("it_three_steps", 4) == [5, 10, 20]
    assert "Task lg_shared[" in worker.logs()


def test_the_log_shows_readable_names_and_ids(shop: Shop):
    worker = shop.worker()
    handle = shop.start("it_three_steps", 4)
    handle.result(timeout=30)
    received = re.findall(r"Task (\S+)\[(\S+)\] received", worker.logs())
    names = {name for name, _ in received if name != "orchestrator.sweep"}
    assert names == {"decide:it_three_steps", "activity:it_add", "activity:it_later", "activity:lg_shared"}
    assert all(task_id.startswith(f"{handle.id}/") for name, task_id in received if name in names)


def test_nothing_is_logged_as_an_error_when_all_goes_well(shop: Shop):
    worker = shop.worker()
    for number in range(5):
        shop.run("it_three_steps", number)
    worker.terminate()
    assert "ERROR" not in worker.logs()
    assert "Traceback" not in worker.logs()
