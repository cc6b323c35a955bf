"""Settings that teams have, and that have nothing to do with workflows: a workflow completes under each."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from tests.acceptance.team_apps.conftest import Team
from tests.support.fixtures.processes import ProcessFactory
from tests.support.waiting import wait_until

DONE = ["order-42 reserved", 500]

SETTINGS: dict[str, dict[str, Any]] = {
    "pickle elsewhere": {"accept_content": ["pickle", "json"], "task_serializer": "pickle"},
    "task_annotations": {
        "task_annotations": {"*": {"acks_late": False, "ignore_result": False, "rate_limit": "50/s", "max_retries": 0}}
    },
    "strict queues": {"task_create_missing_queues": True, "task_default_queue": "team", "task_default_priority": 3},
    "early acknowledgement": {"task_acks_late": False, "task_reject_on_worker_lost": False, "task_track_started": True},
    "message protocol 1": {"task_protocol": 1, "task_compression": "gzip"},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_workflow_completes_under_the_teams_settings(make_team: Callable[..., Team], settings: dict[str, Any]):
    team = make_team(**settings)
    team.worker()
    assert team.start().result(timeout=30) == DONE


OPTIONS: dict[str, list[str]] = {
    "autoscale": ["--autoscale", "3,1"],
    "one task per child": ["--max-tasks-per-child", "1"],
    "little memory per child": ["--max-memory-per-child", "1000"],
    "events and fair scheduling": ["-E", "-O", "fair", "--prefetch-multiplier", "1"],
}


@pytest.mark.parametrize("args", OPTIONS.values(), ids=OPTIONS.keys())
def test_a_workflow_completes_under_the_workers_options(make_team: Callable[..., Team], args: list[str]):
    team = make_team()
    team.worker(args=args)
    assert team.start().result(timeout=30) == DONE


CLIENT = """
from tests.acceptance.team_apps.team_app import durable, ta_fulfil
print("result", durable.start(ta_fulfil, "order-42", 250, id="routed").result(timeout=30))
"""


def test_task_routes_send_decisions_and_activities_to_the_teams_queues(
    make_team: Callable[..., Team], start_process: ProcessFactory
):
    team = make_team(task_routes={"ta_charge": {"queue": "payments"}, "orchestrator.decide": {"queue": "decisions"}})
    workers = {queue: team.worker(queues=[queue], pool="solo") for queue in ("celery", "payments", "decisions")}
    client = start_process([sys.executable, "-c", CLIENT], env=team.env)
    assert client.wait(timeout=45) == 0
    assert f"result {DONE}" in client.logs()
    ran = {queue: set(re.findall(r"Task (\S+)\[\S+ received", worker.logs())) for queue, worker in workers.items()}
    names = {queue: tasks - {"orchestrator.sweep"} for queue, tasks in ran.items()}
    assert names == {
        "celery": {"activity:ta_reserve"},
        "payments": {"activity:ta_charge"},
        "decisions": {"decide:ta_fulfil"},
    }


def test_the_base_class_of_the_teams_tasks_sees_activities_succeed(make_team: Callable[..., Team], tmp_path: Path):
    team = make_team(audited=True)
    team.worker()
    assert team.start().result(timeout=30) == DONE
    wanted = {"ta_reserve order-42 reserved", "ta_charge 500"}
    audit = tmp_path / "audit"
    wait_until(lambda: audit.exists() and wanted <= set(audit.read_text().splitlines()), 10, message="the book")


def test_a_database_result_back_end_holds_the_teams_results_and_none_of_ours(
    make_team: Callable[..., Team], empty_postgres_url: str
):
    # Celery hands the URL to SQLAlchemy as it is, and there a bare postgresql:// means another driver.
    results = f"postgresql+psycopg2://{empty_postgres_url.partition('://')[2]}"
    team = make_team(result_backend=f"db+{results}", result_extended=True)
    team.worker(pool="threads")
    assert team.durable.app.send_task("ta_plain", [41]).get(timeout=30) == 42
    assert team.start().result(timeout=30) == DONE
    with psycopg2.connect(empty_postgres_url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT name FROM celery_taskmeta")
        assert cursor.fetchall() == [("ta_plain",)]


def test_plain_beat_sends_housekeeping_beside_the_teams_own_entries(make_team: Callable[..., Team], tmp_path: Path):
    entry = {"task": "ta_plain", "schedule": 1.0, "args": [1]}
    team = make_team(beat_schedule={"every second": entry})
    worker = team.worker(args=["--beat", "--schedule", str(tmp_path / "beat")])
    assert team.start().result(timeout=30) == DONE

    def sent() -> bool:
        lines = [line for line in worker.logs().splitlines() if "Sending due task" in line]
        return any("every second" in line for line in lines) and any("orchestrator" in line for line in lines)

    wait_until(sent, 20, message=lambda: worker.logs()[-3000:])
