"""What doctor says about settings that lose, double or hold up work."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery

from orchestrator import activity, workflow
from orchestrator.activity.definition import registry as activities
from orchestrator.cli.checks.findings import Level
from orchestrator.cli.checks.settings import check_settings
from orchestrator.runtime.registry import default_registry

GOOD = {"worker_cancel_long_running_tasks_on_connection_loss": True}


@pytest.fixture(autouse=True)
def definitions_of_this_test() -> Iterator[None]:
    """Forgets what other tests have defined, and what this one defines."""
    with activities.scope(), default_registry().scope():
        activities._by_name = {}
        default_registry()._by_name = {}
        yield


def codes(broker: str = "amqp://localhost", **settings: Any) -> dict[str, Level]:
    app = Celery("shop", broker=broker, set_as_current=False)
    app.conf.update({**GOOD, **settings})
    return {finding.code: finding.level for finding in check_settings(app)}


@pytest.mark.parametrize("broker", ["amqp://localhost", "pyamqp://localhost", "redis://localhost"])
def test_good_settings_have_no_findings(broker: str):
    assert codes(broker) == {}


@pytest.mark.parametrize(
    ("settings", "code", "level"),
    [
        ({"task_always_eager": True}, "task-always-eager", Level.PROBLEM),
        ({"accept_content": ["pickle"]}, "accept-content", Level.PROBLEM),
        ({"task_protocol": 1}, "task-protocol", Level.PROBLEM),
        ({"worker_cancel_long_running_tasks_on_connection_loss": False}, "connection-loss", Level.WARNING),
        ({"worker_pool": "threads"}, "pool", Level.WARNING),
        ({"worker_pool": "solo"}, "pool", Level.WARNING),
        ({"worker_pool": "gevent"}, "pool", Level.PROBLEM),
        ({"broker": "memory://"}, "memory-broker", Level.WARNING),
        ({"orchestrator_database_url": "sqlite:///a.db"}, "sqlite", Level.WARNING),
        (
            {"broker": "redis://h", "broker_transport_options": {"visibility_timeout": 30}},
            "visibility-timeout",
            Level.WARNING,
        ),
    ],
)
def test_a_setting_is_found_and_nothing_else_is_said(settings: dict[str, Any], code: str, level: Level):
    assert codes(**settings) == {code: level}


@pytest.mark.parametrize("content", [["json"], ["application/json", "pickle"], ["json", "msgpack"]])
def test_other_formats_beside_json_are_fine(content: list[str]):
    assert codes(accept_content=content) == {}


@pytest.mark.parametrize("settings", [{"broker": "memory://", "orchestrator_database_url": "sqlite:///a.db"}])
def test_sqlite_with_the_memory_broker_is_as_it_should_be(settings: dict[str, Any]):
    assert codes(**settings) == {"memory-broker": Level.WARNING}


def test_activities_longer_than_redis_waits_are_named_by_their_length():
    @activity.defn(start_to_close_timeout=timedelta(hours=2))
    def cook(dish: str) -> None: ...

    assert codes("redis://localhost") == {"visibility-timeout": Level.WARNING}
    assert codes("redis://localhost", broker_transport_options={"visibility_timeout": 8000}) == {}
    assert codes("amqp://localhost") == {}


def test_activities_that_celery_ends_before_their_own_timeout_are_named():
    @activity.defn(start_to_close_timeout=timedelta(minutes=10))
    def cook(dish: str) -> None: ...

    app = Celery("shop", broker="amqp://localhost", set_as_current=False)
    app.conf.update(GOOD, task_soft_time_limit=60)
    (finding,) = check_settings(app)
    assert (finding.code, finding.level) == ("time-limit", Level.WARNING)
    assert "cook" in finding.message
    assert codes(task_time_limit=600) == {}


def test_late_plain_tasks_without_a_time_limit_are_named():
    for broker, words in (("amqp://localhost", "the worker exits"), ("redis://localhost", "twice at once")):
        app = Celery("shop", broker=broker, set_as_current=False)
        app.conf.update(GOOD)

        @app.task(name="shop.unlimited", acks_late=True, shared=False)
        def unlimited() -> None: ...

        @app.task(name="shop.limited", acks_late=True, time_limit=60, shared=False)
        def limited() -> None: ...

        @app.task(name="shop.early", shared=False)
        def early() -> None: ...

        (finding,) = check_settings(app)
        assert (finding.code, finding.level) == ("broker-tolerance", Level.WARNING)
        assert "shop.unlimited" in finding.message
        assert "shop.limited" not in finding.message
        assert "shop.early" not in finding.message
        assert words in finding.message


def test_queues_that_celery_would_not_create_are_named():
    @workflow.defn(queue="orders")
    async def fulfil() -> None: ...

    @activity.defn(queue="payments")
    def charge(cents: int) -> None: ...

    @activity.defn
    def routed(cents: int) -> None: ...

    assert codes() == {}
    app = Celery("shop", broker="amqp://localhost", set_as_current=False)
    app.conf.update(GOOD, task_create_missing_queues=False, task_queues={"celery": {}, "payments": {}})
    app.conf.task_routes = {"routed": {"queue": "payments"}}
    (finding,) = check_settings(app)
    assert (finding.code, finding.level) == ("missing-queue", Level.PROBLEM)
    assert "orders" in finding.message
    assert "payments" not in finding.message


def test_every_finding_says_what_to_do():
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(task_always_eager=True, accept_content=["pickle"], task_protocol=1, worker_pool="gevent")
    findings = check_settings(app)
    assert len(findings) == 5
    assert all(finding.advice and finding.message.endswith((".", "refused.")) for finding in findings)
