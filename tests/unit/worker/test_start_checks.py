"""What a worker refuses at its start, with the reason."""

from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from celery.concurrency.prefork import TaskPool as Prefork
from celery.concurrency.thread import TaskPool as Threads

from orchestrator import activity
from orchestrator.activity.definition import registry
from orchestrator.errors import ConfigurationError, Unavailable
from orchestrator.store.database import Database
from orchestrator.worker.bootsteps import check_database, refuse_what_cannot_work, tolerance_of
from tests.support.ports import free_port


def worker(pool: Any = Prefork, method: str = "fork") -> Any:
    return SimpleNamespace(pool_cls=pool, pool_start_method=method)


@pytest.fixture
def app() -> Celery:
    return Celery("team", broker="memory://", set_as_current=False)


@pytest.mark.parametrize("pool", [Prefork, Threads])
def test_usual_pools_are_fine(app: Celery, pool: Any):
    refuse_what_cannot_work(app, worker(pool))


@pytest.mark.parametrize("pool", ["celery.concurrency.gevent", "celery.concurrency.eventlet"])
def test_green_pools_are_refused_with_the_reason(app: Celery, pool: str):
    with pytest.raises(ConfigurationError, match="event loop"):
        refuse_what_cannot_work(app, worker(pool))


def test_spawned_pool_processes_are_refused_with_the_reason(app: Celery, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ConfigurationError, match="-P threads"):
        refuse_what_cannot_work(app, worker(method="spawn"))
    refuse_what_cannot_work(app, worker(Threads, method="spawn"))
    monkeypatch.setenv("FORKED_BY_MULTIPROCESSING", "1")
    with pytest.raises(ConfigurationError, match="spawned"):
        refuse_what_cannot_work(app, worker())


def test_without_json_in_accept_content_it_is_refused(app: Celery):
    app.conf.accept_content = ["pickle"]
    with pytest.raises(ConfigurationError, match="accept_content"):
        refuse_what_cannot_work(app, worker())
    app.conf.accept_content = ["pickle", "application/json"]
    refuse_what_cannot_work(app, worker())


def test_an_activity_under_another_task_decorator_is_refused_and_points_to_of(app: Celery):
    with registry.scope():

        @app.task(name="unit.stacked", shared=False)
        @activity.defn(name="unit.below")
        def stacked(value: int) -> int:
            return value

        with pytest.raises(ConfigurationError, match=r"activity\.of"):
            refuse_what_cannot_work(app, worker())


@pytest.mark.parametrize(
    ("url", "options", "seconds"),
    [
        ("amqp://localhost", {}, 900.0),
        ("redis://localhost", {}, 3600.0),
        ("rediss://localhost", {"visibility_timeout": 60}, 60.0),
        ("memory://", {}, None),
    ],
)
def test_what_the_broker_tolerates_unacknowledged(
    app: Celery, url: str, options: dict[str, Any], seconds: float | None
):
    app.conf.update(broker_url=url, broker_transport_options=options)
    assert tolerance_of(app) == seconds


def test_a_database_that_is_away_is_told_with_its_setting_and_without_its_password():
    db = Database.open(f"postgresql://shop:secret@127.0.0.1:{free_port()}/shop")
    with pytest.raises(Unavailable, match="orchestrator_database_url") as caught:
        check_database(db)
    assert "secret" not in str(caught.value)
