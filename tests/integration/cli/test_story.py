"""A workflow's life from the command line, with real workers."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.integration.cli.conftest import APP, CommandLine, Place
from tests.support.celery_worker import python_env
from tests.support.fixtures.processes import WorkerFactory
from tests.support.processes import ROOT, ManagedProcess
from tests.support.waiting import wait_until
from tests.unit.cli.conftest import Shop

QUEUES = ["celery", "cli_orders", "cli_payments"]


def waits(cli: Shop, workflow_id: str) -> list[str]:
    return [wait["name"] for wait in cli.json("show", workflow_id)["waits"]]


def test_a_workflow_is_started_watched_signalled_and_ends(on_servers: Place, celery_worker_process: WorkerFactory):
    cli = on_servers.here
    assert "Started order-42" in on_servers.own.run("start", "cli_fulfil", "42", "999", "--id", "order-42").stdout
    problems = {item["code"] for item in cli.json("doctor", code=1)["findings"] if item["level"] == "problem"}
    assert problems == {"no-worker", "sweep"}

    celery_worker_process(APP, queues=QUEUES, pool="prefork", env=on_servers.env)
    wait_until(lambda: waits(cli, "order-42") == ["address"], 60)
    assert "is RUNNING after 0.2 s" in cli.error("result", "order-42", "--timeout", "0.2")
    assert cli.json("signal", "order-42", "address", "Main St 1")["stored"] is True
    done = on_servers.own.run("result", "order-42", "--timeout", "30")
    assert done.stdout == "charged 42 999, to Main St 1\n"
    kinds = [event["kind"] for event in cli.json("history", "order-42")["events"]]
    assert (kinds[0], kinds[-1]) == ("RunStarted", "RunCompleted")
    assert [item["id"] for item in cli.json("list", "--status", "COMPLETED")["items"]] == ["order-42"]
    unserved = [item for item in cli.json("doctor")["findings"] if item["code"] == "unserved-queue"]
    assert all("cli_" not in item["message"] for item in unserved)


def test_a_class_is_started_queried_and_cancelled(on_servers: Place, celery_worker_process: WorkerFactory):
    cli = on_servers.here
    celery_worker_process(APP, queues=QUEUES, pool="threads", env=on_servers.env)
    cli.json("start", "CliApproval", "500", "--id", "a")
    wait_until(lambda: cli.json("show", "a")["status"] == "RUNNING", 60)
    assert cli.json("query", "a", "pending")["answer"] is True
    cli.text("cancel", "a", "--reason", "no longer wanted")
    assert "was cancelled: no longer wanted" in cli.error("result", "a", "--timeout", "30")


def test_dev_runs_everything_in_one_process_and_goes_on_where_it_was_killed(
    embedded: Place, tmp_path: Path, keep_process: Callable[[ManagedProcess], None]
):
    cli = embedded.here
    dev = ManagedProcess(embedded.own.command("dev"), log_path=tmp_path / "dev.log", env=python_env(embedded.env))
    keep_process(dev)
    dev.start()
    wait_until(lambda: " ready." in dev.logs(), 60, message=dev.logs)
    cli.json("start", "cli_fulfil", "42", "999", "--id", "order-42")
    wait_until(lambda: waits(cli, "order-42") == ["address"], 60)
    dev.kill()
    cli.json("signal", "order-42", "address", "Main St 1")
    dev.start()
    assert cli.text("result", "order-42", "--timeout", "60") == "charged 42 999, to Main St 1\n"
    dev.signal(signal.SIGINT)
    assert dev.wait(30) == 0, dev.logs()
    assert "Traceback" not in dev.logs()


def test_without_an_app_it_says_how_to_name_one(tmp_path: Path):
    told = CommandLine({}, app=None).run("list", code=64)
    assert "celery -A shop workflow list" in told.stderr
    (tmp_path / "bare.py").write_text("from celery import Celery\napp = Celery('bare', broker='memory://')\n")
    bare = CommandLine({"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}, app="bare").run("list", code=64)
    assert "durable = Orchestrator(app)" in bare.stderr
    assert "Traceback" not in bare.stderr


def test_a37_a_database_that_is_away_is_two_to_the_shell():
    cli = CommandLine({"BROKER_URL": "memory://", "DATABASE_URL": "postgresql://127.0.0.1:9/nothing"})
    assert "Traceback" not in cli.run("list", code=2).stderr


def test_every_celery_command_pays_for_a_click_group_only():
    code = "import sys, orchestrator.cli; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=python_env(), capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"sqlalchemy", "pydantic", "rich", "alembic", "celery", "orchestrator.app"})
