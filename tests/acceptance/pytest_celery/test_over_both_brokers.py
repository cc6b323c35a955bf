"""Workflows under pytest-celery: each test runs once over RabbitMQ and once over Redis."""

from pathlib import Path

from pytest_celery import CeleryTestSetup

from orchestrator import Orchestrator
from tests.support.waiting import wait_until


def test_a_workflow_completes_and_the_workers_log_names_its_steps(celery_setup: CeleryTestSetup, durable: Orchestrator):
    assert durable.start("pc_ship", "order-42", id="order-42", queue="celery").result(timeout=30) == "order-42 packed"
    celery_setup.worker.assert_log_exists("activity:pc_pack[order-42/")
    celery_setup.worker.assert_log_exists("decide:pc_ship[order-42/")


def test_a_killed_worker_goes_on_with_the_workflow_after_its_restart(
    celery_setup: CeleryTestSetup, durable: Orchestrator, tmp_path: Path
):
    worker, gate = celery_setup.worker, tmp_path / "gate"
    handle = durable.start("pc_wait", str(gate), id="order-42", queue="celery")
    wait_until(Path(f"{gate}.started").exists, 20)
    worker.kill()
    assert worker.container.status == "exited"
    gate.touch()
    worker.restart()
    assert handle.result(timeout=40) == [2, "order-42 packed"]
    worker.assert_log_exists("activity:pc_wait_for[order-42/")


def test_a_workflow_that_is_started_while_no_worker_runs_completes_when_one_does(
    celery_setup: CeleryTestSetup, durable: Orchestrator
):
    worker = celery_setup.worker
    worker.kill()
    handle = durable.start("pc_ship", "order-43", id="order-43", queue="celery")
    worker.restart()
    assert handle.result(timeout=30) == "order-43 packed"
