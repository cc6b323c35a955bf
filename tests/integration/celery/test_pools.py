"""A workflow of three activities (sync, async, a plain task) completes in every pool, on every broker."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.celery.conftest import Shop
from tests.support.celery_worker import python_env
from tests.support.processes import ROOT

STEPS = [5, 10, 20]


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_three_steps_complete_over_rabbitmq(shop: Shop, pool: str):
    shop.worker(pool=pool)
    assert shop.run("it_three_steps", 4) == STEPS


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_three_steps_complete_over_redis(redis_shop: Shop, pool: str):
    redis_shop.worker(pool=pool)
    assert redis_shop.run("it_three_steps", 4) == STEPS


EMBEDDED = """
from celery.contrib.testing.worker import start_worker
from tests.integration.celery.shop_app import app, durable
app.conf.broker_transport_options = {"polling_interval": 0.002}
with start_worker(app, pool="threads", concurrency=4, perform_ping_check=False):
    print(durable.start("it_three_steps", 4, id="embedded").result(timeout=20))
"""


def test_three_steps_complete_in_one_process_without_any_server(tmp_path: Path):
    env = {"DATABASE_URL": f"sqlite:///{tmp_path}/shop.db", "EFFECTS_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", EMBEDDED], cwd=ROOT, env=python_env(env), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip().splitlines()[-1:] == [str(STEPS)], done.stderr


def test_many_activities_of_one_workflow_run_beside_each_other(shop: Shop):
    shop.worker(pool="threads", concurrency=8)
    assert shop.run("it_many", "it_add", [1, 2], 30) == [3] * 30


def test_the_housekeeping_queue_is_consumed_although_other_queues_were_asked_for(shop: Shop):
    worker = shop.worker(queues=["slow"], args=["--loglevel", "INFO"])
    assert "celery.housekeeping" in worker.logs()
