"""Messages that are lost, doubled, misdirected or told to go away: the rows they stand for bring them back."""

import os
import signal
import subprocess
import sys
import time

import pytest
from celery import Celery
from kombu import Connection

from orchestrator.store import activities, timers
from tests.integration.celery.conftest import APP, Shop
from tests.support.celery_worker import python_env
from tests.support.fixtures.processes import ProcessFactory, WorkerFactory
from tests.support.processes import ROOT
from tests.support.waiting import wait_until


def test_activities_whose_messages_were_purged_are_sent_again(shop: Shop):
    shop.worker(queues=["celery"])
    handle = shop.start("it_one", "it_add", [1, 2], "later")
    with Connection(shop.broker) as connection:
        channel = connection.channel()
        wait_until(lambda: _depth(channel, "later") == 1, ignoring=(Exception,))
        channel.queue_purge("later")
    shop.worker(queues=["later"])
    assert handle.result(timeout=40) == 3


def _depth(channel: object, queue: str) -> int:
    return channel.queue_declare(queue=queue, passive=True).message_count  # type: ignore[attr-defined,no-any-return]


def test_a_waiting_backlog_is_not_sent_again(shop: Shop):
    shop.worker(queues=["celery"], concurrency=2)
    handles = [shop.start("it_one", "it_add", [1, 2], "later") for _ in range(10)]
    with Connection(shop.broker) as connection:
        channel = connection.channel()
        wait_until(lambda: _depth(channel, "later") >= 10, ignoring=(Exception,))
        time.sleep(8)  # well beyond two re-sends of 3 s
        assert _depth(channel, "later") == 10
    shop.worker(queues=["later"])
    assert [handle.result(timeout=40) for handle in handles] == [3] * 10


def test_an_activity_nobody_knows_waits_for_the_worker_that_does(shop: Shop, celery_worker_process: WorkerFactory):
    shop.worker(queues=["celery"])
    stranger = celery_worker_process("tests.integration.celery.stranger_app", env=_env(shop), queues=["odd"])
    handle = shop.start("it_one", "it_add", [1, 2], "odd")
    wait_until(lambda: "unregistered task" in stranger.logs(), 20)
    stranger.terminate()
    shop.worker(queues=["odd"])
    assert handle.result(timeout=60) == 3


def test_revoking_the_task_does_not_take_it_from_its_workflow(shop: Shop):
    shop.worker(queues=["celery"])
    app = Celery(broker=shop.broker, set_as_current=False)
    handle = shop.start("it_one", "it_watchful", ["watch", 3], "later")
    task_id = wait_until(lambda: _first_id(shop.broker, "later"))
    watcher = shop.worker(queues=["later"], concurrency=1)
    shop.wait_for_effect("watch")
    app.control.revoke(task_id, terminate=True, signal="SIGKILL")
    shop.wait_for_effect("watch", 2)
    app.control.revoke(task_id)
    assert handle.result(timeout=60) == "finished"
    assert "Terminating" in watcher.logs()


def test_a_waiting_task_that_is_revoked_runs_all_the_same(shop: Shop):
    shop.worker(queues=["celery"])
    app = Celery(broker=shop.broker, set_as_current=False)
    worker = shop.worker(queues=["other"])
    handle = shop.start("it_one", "it_add", [1, 2], "later")
    task_id = wait_until(lambda: _first_id(shop.broker, "later"))
    app.control.revoke(task_id)
    app.control.add_consumer("later", destination=[worker.hostname])
    assert handle.result(timeout=60) == 3


def _first_id(broker: str, queue: str) -> str | None:
    with Connection(broker) as connection:
        channel = connection.channel()
        try:
            message = channel.basic_get(queue)
        except connection.channel_errors:
            return None
        if message is None:
            return None
        channel.basic_reject(message.delivery_tag, requeue=True)
        return str(message.headers["id"])


def _env(shop: Shop) -> dict[str, str]:
    return {"BROKER_URL": shop.broker, "DATABASE_URL": shop.database, "EFFECTS_DIR": str(shop.effects)}


def test_with_all_slots_busy_and_no_beat_a_due_timer_still_fires(shop: Shop):
    shop.worker(concurrency=1)
    handle = shop.start("it_naps", 2)
    database = shop.durable.engine().db

    def timer_rows() -> bool:
        with database.read() as conn:
            return timers.next_due(conn) is not None

    wait_until(timer_rows)
    busy = shop.start("it_one", "it_watchful", ["busy"])
    shop.wait_for_effect("busy")
    began = time.monotonic()
    wait_until(lambda: not timer_rows(), 15)
    assert time.monotonic() - began < 6
    busy.cancel()
    assert handle.result(timeout=60) == "rested"


def test_beat_drives_the_sweep_through_the_housekeeping_queue(shop: Shop, start_process: ProcessFactory, tmp_path):
    worker = shop.worker()
    beat = [sys.executable, "-m", "celery", "-A", APP, "beat", "--schedule", str(tmp_path / "beat"), "--pidfile", ""]
    start_process(beat, env=_env(shop))
    wait_until(lambda: worker.logs().count("Task orchestrator.sweep") >= 4, 30)
    assert shop.run("it_naps", 0.5) == "rested"
    assert "Traceback" not in worker.logs()


def test_starts_are_accepted_while_the_broker_is_away_and_decided_when_workers_come(make_shop):
    away = make_shop("amqp://guest:guest@127.0.0.1:1//")
    began = time.monotonic()
    handle = away.start("it_three_steps", 4)
    assert time.monotonic() - began < 5
    assert handle.describe().status == "PENDING"


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_worker_told_to_stop_finishes_what_it_runs_and_signs_off(shop: Shop, pool: str):
    worker = shop.worker(pool=pool)
    handle = shop.start("it_one", "it_sleeps", ["sleeps", 3])
    shop.wait_for_effect("sleeps")
    worker.signal(signal.SIGTERM)
    worker.wait(30)
    shop.worker()
    assert handle.result(timeout=30) == 1
    assert len(shop.lines("sleeps")) == 1


def test_what_a_cold_shutdown_interrupts_is_handed_back_and_counts_as_nothing(shop: Shop):
    worker = shop.worker(concurrency=1)
    handle = shop.start("it_one", "it_sleeps", ["sleeps", 20])
    shop.wait_for_effect("sleeps")
    worker.signal(signal.SIGQUIT)
    worker.wait(30)
    shop.worker(env={"SLEEP": "0"})
    assert handle.result(timeout=40) == 2
    with shop.durable.engine().db.read() as conn:
        row = activities.get(conn, handle.run_id, 1)
    assert row is not None
    assert (row.attempt, row.failures, row.losses) == (2, 0, 0)


def test_a_database_without_tables_is_refused_at_start_with_what_to_run(empty_postgres_url: str, rabbitmq_url: str):
    env = python_env({"BROKER_URL": rabbitmq_url, "DATABASE_URL": empty_postgres_url})
    command = [sys.executable, "-m", "celery", "-A", APP, "worker", "--pool", "solo"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "workflow migrate" in done.stderr + done.stdout


def test_processes_are_recycled_after_each_task_without_loss(shop: Shop):
    shop.worker(concurrency=2, args=["--max-tasks-per-child", "1"])
    assert shop.run("it_many", "it_add", [1, 2], 6, timeout=60) == [3] * 6
