"""Settings under which workflows would hang or be lost: refused by name, before anything is accepted."""

import subprocess
from collections.abc import Callable

import pytest

from orchestrator.errors import ConfigurationError
from tests.acceptance.team_apps.conftest import Team
from tests.support.celery_worker import CeleryWorker


def wait_for_the_end(worker: CeleryWorker) -> str:
    """Waits until a worker that was refused has ended; returns what it said."""
    try:
        code = worker.wait(30)
    except subprocess.TimeoutExpired:
        pytest.fail(f"it was not refused:\n{worker.logs()[-4000:]}")
    assert code != 0
    assert "ready." not in worker.logs()
    return worker.logs()


def test_a_worker_that_does_not_accept_json_is_refused_at_its_start(make_team: Callable[..., Team]):
    worker = make_team(accept_content=["pickle"], task_serializer="pickle").worker(wait=False)
    assert "accept_content lacks 'json'" in wait_for_the_end(worker)


def test_an_eager_app_is_refused_by_the_client_and_by_the_worker(make_team: Callable[..., Team]):
    team = make_team(task_always_eager=True)
    with pytest.raises(ConfigurationError, match="task_always_eager"):
        team.start()
    assert "task_always_eager is set" in wait_for_the_end(team.worker(wait=False))


def test_a_worker_of_the_gevent_pool_is_refused_at_its_start(make_team: Callable[..., Team]):
    pytest.importorskip("gevent")
    worker = make_team().worker(pool="gevent", wait=False)
    assert "The gevent and eventlet pools can't run workflows" in wait_for_the_end(worker)
