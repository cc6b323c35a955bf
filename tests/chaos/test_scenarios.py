"""What went wrong for people who run task queues, as far as it takes broken workers and brokers to see it."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable

import pytest
from kombu import Connection, Queue

from orchestrator import WorkflowCanceled
from orchestrator.model.events import ActivityCompleted
from orchestrator.store import activities, history
from tests.chaos.conftest import BRISK, FULL, MakeYard, Yard
from tests.support.celery_worker import CeleryWorker
from tests.support.fixtures.own_servers import ServerFactory
from tests.support.own_server import OwnServer
from tests.support.rabbitmq_server import RabbitMQServer
from tests.support.waiting import wait_until

Figure = Callable[[str, str], None]
pytestmark = pytest.mark.slow


@pytest.mark.timeout(240)
def test_the_starts_of_a_killer_are_counted_across_a_restart_of_the_broker(
    make_yard: MakeYard, own_rabbitmq: ServerFactory[OwnServer], postgres_url: str, figure: Figure
) -> None:
    broker = own_rabbitmq()
    yard = make_yard(broker.url, postgres_url, **BRISK)
    yard.worker(concurrency=3)
    poison = yard.start("ch_kills", "poison")
    healthy = [yard.start("ch_order", f"o{number}", 0) for number in range(5)]
    wait_until(lambda: yard.ledger.lines("poison"), 40)
    broker.restart()
    since = time.monotonic()
    assert "WorkerLost" in poison.result(timeout=100)
    assert [len(order.result(timeout=100)) for order in healthy] == [10] * 5
    figure("broker restarted beside a killer", f"{time.monotonic() - since:.1f} s until all was done")
    assert len(yard.ledger.lines("poison")) == 3


@pytest.mark.timeout(300)
@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_nothing_is_lost_or_failed_by_workers_that_restart_all_the_time(yard: Yard, pool: str, figure: Figure) -> None:
    count = 200 if FULL else 40
    worker = yard.worker(pool=pool)
    fan = yard.start("ch_fan", "drain", count, "celery")
    steady = [yard.start("ch_order", f"o{number}", 0.05) for number in range(4)]
    since, restarts = time.monotonic(), 0
    while len(yard.ledger.effects()) < count + 40:
        assert time.monotonic() - since < 200, "stuck"
        reached = len(yard.ledger.effects())
        # It goes down at work: after a few effects, or a few seconds in which there was nothing to do yet.
        wait_in_vain(lambda reached=reached: len(yard.ledger.effects()) >= reached + (20 if FULL else 12), 5)
        restart(worker)
        restarts += 1
    assert fan.result(timeout=60) == count
    assert [len(handle.result(timeout=60)) for handle in steady] == [10] * 4
    figure(f"{pool}, {restarts} restarts", f"{time.monotonic() - since:.1f} s")
    assert yard.ledger.lines("twice") == []
    with yard.durable.engine().db.read() as conn:
        rows = [row for handle in [fan, *steady] for row in activities.of_run(conn, handle.run_id)]
    assert {row.failures for row in rows} <= {0}


def wait_in_vain(condition: Callable[[], object], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)


def restart(worker: CeleryWorker) -> None:
    worker.signal(signal.SIGTERM)
    try:
        worker.wait(2)
    except subprocess.TimeoutExpired:
        worker.kill()
    worker.restart(60)


@pytest.mark.timeout(240)
def test_activities_scheduled_while_the_broker_takes_nothing_are_done_when_it_does(
    make_yard: MakeYard, own_rabbitmq: ServerFactory[RabbitMQServer], postgres_url: str, figure: Figure
) -> None:
    broker = own_rabbitmq()
    yard = make_yard(broker.url, postgres_url, **BRISK)
    yard.worker(queues=["celery"])
    held = yard.start("ch_hold_then_fan", "hold", 20, "later")
    wait_until(lambda: yard.ledger.lines("hold"), 40)
    broker.ctl("set_vm_memory_high_watermark", "0.000001")
    yard.ledger.note("hold.release")
    began = time.monotonic()
    yard.start("ch_waits", id="during")
    assert time.monotonic() - began < 3.5
    yard.worker(queues=["later"])
    assert yard.durable.get_handle("during").describe().status == "PENDING"
    broker.ctl("set_vm_memory_high_watermark", "0.6")
    since = time.monotonic()
    assert held.result(timeout=100) == 20
    wait_until(lambda: yard.durable.get_handle("during").describe().waits, 60)
    figure("memory alarm over", f"{time.monotonic() - since:.1f} s until all was done")


def test_a_queue_that_refuses_what_is_too_much_gets_it_later(yard: Yard, figure: Figure) -> None:
    arguments = {"x-max-length": 5, "x-overflow": "reject-publish"}
    with Connection(yard.broker) as connection:
        Queue("narrow", routing_key="narrow", queue_arguments=arguments)(connection.channel()).declare()
    # Who publishes must know the queue's arguments too: RabbitMQ refuses to declare it with others.
    yard.worker(app="tests.chaos.narrow_app", queues=["celery"])
    handle = yard.start("ch_fan", "fan", 20, "narrow")
    wait_until(lambda: yard.depth("narrow") == 5, 40)
    since = time.monotonic()
    yard.worker(app="tests.chaos.narrow_app", queues=["narrow"])
    assert handle.result(timeout=100) == 20
    figure("queue of five, twenty activities", f"{time.monotonic() - since:.1f} s")


def test_an_activity_cancelled_while_all_workers_are_down_never_runs(yard: Yard) -> None:
    deciding = yard.worker(queues=["celery"])
    handle = yard.start("ch_fan", "cancelled", 3, "later")
    wait_until(lambda: yard.depth("later") == 3, 40)
    deciding.terminate()
    handle.cancel("changed my mind")
    yard.worker(queues=["celery"])
    with pytest.raises(WorkflowCanceled):
        handle.result(timeout=40)
    late = yard.worker(queues=["later"])
    wait_until(lambda: late.logs().count("is not run") >= 3, 40)
    assert yard.ledger.lines("executions") == []


@pytest.mark.timeout(240)
def test_processes_that_crash_before_any_task_begins_hold_nothing_up_for_ever(yard: Yard, figure: Figure) -> None:
    yard.worker(queues=["celery"])
    broken = yard.worker(queues=["later"], env={"CRASH": "init"}, wait=False)
    late = yard.start("ch_times_out", "late", "later", 4)
    handle = yard.start("ch_fan", "fan", 5, "later")
    assert "schedule_to_start" in late.result(timeout=60)
    assert yard.ledger.lines("executions") == []
    since = time.monotonic()
    yard.worker(queues=["later"])
    assert handle.result(timeout=100) == 5
    figure("a sound worker beside one whose children crash", f"{time.monotonic() - since:.1f} s")
    broken.kill()


def test_the_late_answer_of_a_timed_out_attempt_changes_nothing(yard: Yard) -> None:
    worker = yard.worker(pool="threads", concurrency=2)
    handle = yard.start("ch_zombies", "zombie")
    assert handle.result(timeout=60) == "new"
    wait_until(lambda: yard.ledger.lines("zombie.late"), 40)
    assert yard.ledger.lines("zombie.told")
    wait_until(lambda: "came too late" in worker.logs(), 20)
    with yard.durable.engine().db.read() as conn:
        bodies = [event.body for event in history.read(conn, handle.run_id)]
    assert [type(body) for body in bodies].count(ActivityCompleted) == 1
    assert yard.ledger.lines("zombie") == ["1", "2"]
