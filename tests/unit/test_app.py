"""`Orchestrator(app)`: reads nothing when made, checks everything at first use."""

import sys
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery

from orchestrator import ConfigurationError, Orchestrator
from orchestrator.app import our_settings
from orchestrator.transport.celery import SWEEP_TASK


def make_app(**conf: Any) -> Celery:
    app = Celery("team", broker="memory://", set_as_current=False)
    app.conf.update({"orchestrator_database_url": "sqlite://", **conf})
    return app


def test_making_one_reads_no_setting_so_the_order_of_lines_does_not_matter():
    app = Celery("team", set_as_current=False)
    durable = Orchestrator(app)
    assert not app.configured
    assert not app.finalized
    app.conf.update(broker_url="memory://", orchestrator_database_url="sqlite://", orchestrator_namespace="shop")
    assert durable.settings.namespace == "shop"
    durable.close()


def test_an_app_has_one_orchestrator_and_it_is_found_again():
    app = make_app()
    durable = Orchestrator(app)
    assert Orchestrator.of(app) is durable
    assert Orchestrator.of(make_app()) is None
    with pytest.raises(ConfigurationError, match="Orchestrator already"):
        Orchestrator(app)


def test_a_missing_database_url_is_an_error_with_an_example_line():
    app = Celery("team", broker="amqp://localhost", set_as_current=False)
    with pytest.raises(ConfigurationError, match=r'orchestrator_database_url = "postgresql://'):
        _ = Orchestrator(app).settings


def test_always_eager_is_refused_and_points_to_the_test_kit():
    durable = Orchestrator(make_app(task_always_eager=True))
    with pytest.raises(ConfigurationError, match=r"orchestrator\.testing"):
        _ = durable.settings


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("orchestrator_sweep_interval", "soon"),
        ("orchestrator_payload_limit", -1),
        ("orchestrator_sweep_intervall", 1),
        ("orchestrator_database_url", "mysql://localhost/shop"),
        ("orchestrator_activity_defaults", {"retries": 3}),
        ("orchestrator_activity_defaults", {"queue": ""}),
        ("orchestrator_activity_defaults", 3),
    ],
)
def test_a_wrong_key_or_value_is_an_error_that_names_it(key: str, value: object):
    with pytest.raises(ConfigurationError, match=key):
        _ = Orchestrator(make_app(**{key: value})).settings


def test_settings_are_read_through_celerys_namespace():
    app = Celery("team", set_as_current=False)
    module = type(sys)("settings")
    module.CELERY_BROKER_URL = "memory://"
    module.CELERY_ORCHESTRATOR_DATABASE_URL = "sqlite://"
    module.CELERY_ORCHESTRATOR_SWEEP_INTERVAL = 3
    module.ORCHESTRATOR_NAMESPACE = "not Celery's"
    app.config_from_object(module, namespace="CELERY")
    durable = Orchestrator(app)
    assert our_settings(app) == {"orchestrator_database_url": "sqlite://", "orchestrator_sweep_interval": 3}
    assert durable.settings.sweep_interval == timedelta(seconds=3)
    durable.close()


def test_a_wrong_key_in_the_namespace_is_named_too():
    app = Celery("team", set_as_current=False)
    module = type(sys)("settings")
    module.CELERY_BROKER_URL = "memory://"
    module.CELERY_ORCHESTRATOR_DATABASE = "sqlite://"
    app.config_from_object(module, namespace="CELERY")
    with pytest.raises(ConfigurationError, match="orchestrator_database is not a setting"):
        _ = Orchestrator(app).settings


def test_activity_defaults_change_all_activities_once():
    durable = Orchestrator(make_app(orchestrator_activity_defaults={"start_to_close_timeout": 7}))
    defaults = durable.engine().activity_defaults
    assert defaults.start_to_close_timeout == timedelta(seconds=7)
    assert defaults.retry_policy is not None
    assert defaults.retry_policy.maximum_attempts == 10
    durable.close()


@pytest.mark.parametrize("finalized_before", [False, True])
def test_beat_gets_the_sweep_on_the_housekeeping_queue_beside_the_teams_own_entries(finalized_before: bool):
    own = {"task": "team.report", "schedule": 60}
    app = make_app(beat_schedule={"report": own}, orchestrator_sweep_interval=0.5, task_default_queue="team")
    if finalized_before:
        app.finalize()
    Orchestrator(app)
    app.finalize()
    assert app.conf.beat_schedule["report"] == own
    entry = app.conf.beat_schedule["orchestrator-sweep"]
    assert (entry["task"], entry["schedule"], entry["options"]["queue"]) == (SWEEP_TASK, 0.5, "team.housekeeping")
    assert "expires" not in entry["options"]
    assert app.amqp.queues["team.housekeeping"].max_length == 10


def test_our_tasks_deliver_as_they_must_whatever_the_apps_settings_are():
    app = make_app(
        task_acks_late=False,
        task_ignore_result=False,
        task_acks_on_failure_or_timeout=False,
        task_default_rate_limit="1/m",
    )
    Orchestrator(app)
    task = app.tasks["orchestrator.decide"]
    assert (task.acks_late, task.reject_on_worker_lost, task.acks_on_failure, task.ignore_result) == (True,) * 4
    assert task.serializer == "json"


def test_workflow_modules_of_packages_are_found_by_celerys_autodiscovery(monkeypatch: pytest.MonkeyPatch):
    app, asked = make_app(), []
    monkeypatch.setattr(app, "autodiscover_tasks", lambda **options: asked.append(options))
    Orchestrator(app)
    assert asked == [{"related_name": "workflows"}]
