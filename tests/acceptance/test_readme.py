"""The programs of the README, run as a reader would run them."""

import os
import sys

from tests.support.processes import ROOT
from tests.support.waiting import wait_until


def test_the_program_of_the_readme_runs_as_printed(
    postgres_url: str, rabbitmq_url: str, celery_worker_process, start_process
):
    env = {
        "BROKER_URL": rabbitmq_url,
        "DATABASE_URL": postgres_url,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests/readme")]),
    }
    celery_worker_process("shop_here:app", queues=["celery", "orders", "payments"], env=env)
    usage = start_process([sys.executable, "-c", "import shop_here, shop.usage"], env=env)
    wait_until(lambda: not usage.is_running(), timeout=60, message=usage.logs)
    assert usage.logs().strip().splitlines()[-1] == "parcel-42 label-42, Main St 1"
    assert usage.returncode == 0
