"""What doctor says about the system as it runs, on each database."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.activity.definition import registry as activities
from orchestrator.model.records import WorkerRecord
from orchestrator.runtime.registry import default_registry
from orchestrator.store import sweeps, workers
from orchestrator.types import SECOND
from tests.unit.cli.conftest import Shop

Ask = Callable[..., dict[str, str]]


@pytest.fixture
def shop(make_shop: Callable[..., Shop], database_url: str) -> Shop:
    """An app on PostgreSQL, then on SQLite."""
    return make_shop(database_url)


def ask(shop: Shop, code: int = 0) -> dict[str, dict[str, Any]]:
    """Returns the findings by their code, without what is fine."""
    answer = shop.json("doctor", code=code)
    assert answer["ok"] is (code == 0)
    return {item["code"]: item for item in answer["findings"] if item["level"] != "ok"}


def worker(shop: Shop, *queues: str, **changes: Any) -> None:
    """Writes a worker's sign of life."""
    engine = shop.durable.engine()
    record = WorkerRecord(
        worker_id="w1",
        hostname="celery@host",
        namespace="default",
        queues=queues,
        pids=((1, 1),),
        tasks=(),
        workflows=(),
        build_id="",
        seen_clock=0,
        seen_at=0,
        started_at=0,
    )
    with engine.db.write() as conn:
        seen = {"seen_at": engine.db.now(conn) - changes.pop("ago", 0) * SECOND}
        workers.upsert(conn, replace(record, **seen, **changes))


def tick(shop: Shop, ago: int = 0) -> None:
    """Writes a tick of the sweep."""
    engine = shop.durable.engine()
    with engine.db.write() as conn:
        assert sweeps.tick(conn, engine.db.now(conn) - ago * SECOND, SECOND) is not None


ALL = ("celery", "orders", "approvals")


def test_a_system_that_runs_has_no_problem(shop: Shop):
    tick(shop)
    worker(shop, *ALL)
    shop.durable.start("client.echo", "a")
    assert set(ask(shop)) <= {"memory-broker", "unserved-queue", "other-code"}
    shown = shop.text("doctor")
    assert "✓ Worker celery@host serves" in shown
    assert "✓ The broker memory://" in shown


def test_a_system_without_workers_and_sweep_is_told_what_to_start(shop: Shop):
    shop.durable.start("client.echo", "a")
    found = ask(shop, code=1)
    assert "never run" in found["sweep"]["message"]
    assert "'orders'" in found["no-worker"]["message"]
    assert "-Q orders" in found["no-worker"]["advice"]


def test_a_sweep_that_has_stopped_is_a_problem(shop: Shop):
    tick(shop, ago=60)
    assert "60." in ask(shop, code=1)["sweep"]["message"]


def test_a_queue_whose_only_worker_is_silent_or_stopping_has_none(shop: Shop):
    tick(shop)
    shop.durable.start("client.echo", "a")
    worker(shop, *ALL, ago=120)
    found = ask(shop, code=1)
    assert {"no-worker", "silent-worker"} <= set(found)
    worker(shop, *ALL, stopping=True)
    assert "no-worker" in ask(shop, code=1)


def test_activities_that_wait_without_a_worker_are_counted(shop: Shop):
    tick(shop)
    worker(shop, "orders", "approvals")
    shop.durable.start("client.busy", queue="orders")
    shop.decide()
    found = ask(shop, code=1)
    assert "0 workflows to begin and 2 activities" in found["no-worker"]["message"]


def test_a_queue_that_nobody_serves_yet_is_a_warning(shop: Shop):
    tick(shop)
    worker(shop, "celery", "orders")
    assert "'approvals'" in ask(shop)["unserved-queue"]["message"]


def test_a_worker_without_the_code_is_named_with_what_it_lacks(shop: Shop):
    tick(shop)
    known = tuple(name for name in default_registry().names() if name != "client.echo")
    tasks = tuple(item.name for item in activities.all())
    worker(shop, *ALL, workflows=known, tasks=tasks)
    assert "for client.echo, which" in ask(shop)["other-code"]["message"]
    worker(shop, *ALL, workflows=(*known, "client.echo"), tasks=tasks)
    assert "other-code" not in ask(shop)


def test_blocked_workflows_are_a_problem(shop: Shop):
    tick(shop)
    worker(shop, *ALL)
    shop.durable.start("client.broken", id="broken")
    shop.decide()
    assert "'broken'" in ask(shop, code=1)["blocked"]["message"]


def test_a_schema_that_is_missing_is_a_problem_and_migrate_cures_it(
    make_shop: Callable[..., Shop], empty_database_url: str
):
    # The embedded default makes its schema by itself, so this is an app with another broker.
    shop = make_shop(empty_database_url, broker="filesystem://")
    assert "workflow migrate" in ask(shop, code=1)["schema"]["message"]
    assert shop.invoke("migrate", "--check").exit_code == 1
    assert "from nothing to revision" in shop.text("migrate")
    assert "nothing to do" in shop.text("migrate")
    again = shop.json("migrate")
    assert again["before"] == again["after"] == again["needed"]
    assert shop.invoke("migrate", "--check").exit_code == 0
    assert "schema" not in ask(shop, code=1)


def test_a_database_that_is_away_is_two(make_shop: Callable[..., Shop]):
    shop = make_shop("postgresql://127.0.0.1:9/nothing", broker="amqp://guest:secret@127.0.0.1:9//")
    found = ask(shop, code=2)
    assert found["database"]["level"] == found["broker"]["level"] == "unreachable"
    assert "secret" not in str(found)
    assert "Error: " in shop.error("list", code=2)
    assert "Error: " in shop.error("migrate", code=2)


def test_settings_that_workflows_refuse_are_findings_too(make_shop: Callable[..., Shop], sqlite_url: str):
    shop = make_shop(sqlite_url, task_always_eager=True)
    assert {"task-always-eager", "configuration"} <= set(ask(shop, code=1))
    shop = make_shop(None, broker="amqp://localhost")
    assert "orchestrator_database_url" in ask(shop, code=1)["configuration"]["message"]
    assert "orchestrator_database_url" in shop.error("list", code=64)


def test_hostile_text_in_findings_is_shown_as_text(shop: Shop):
    tick(shop)
    worker(shop, *ALL, hostname="celery@\x1b[2Jhost[red]")
    output = shop.invoke("doctor", color=True).output
    assert "\x1b[2J" not in output
    assert "[red]" in output
