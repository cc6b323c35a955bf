"""The pytest plugin, in a project of its own."""

import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.processes import ROOT

TESTS = '''
from orchestrator import activity, workflow


@activity.defn
def charge(order_id: str) -> str:
    return "really charged"


@workflow.defn
async def pay(order_id: str) -> str:
    await workflow.sleep(86400)
    return await charge.execute(order_id)


def test_a_workflow(workflow_environment):
    workflow_environment.stub(charge, returns="paid")
    assert workflow_environment.run(pay, "42") == "paid"


def test_an_activity(activity_environment):
    assert activity_environment.run(charge, "42") == "really charged"
'''

WITH_APP = '''
import celery
import pytest


@pytest.fixture
def workflow_app():
    app = celery.Celery("shop")
    app.conf.orchestrator_namespace = "shop"
    return app


def test_the_app_s_settings_hold(workflow_environment):
    from tests.unit.testing import shop
    assert workflow_environment.start(shop.nap, 1).describe().namespace == "shop"
'''


def run_pytest(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "orchestrator.testing.plugin", f"--rootdir={directory}", *options],
        cwd=directory,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_fixtures_are_there_in_a_project_of_its_own(tmp_path: Path):
    (tmp_path / "test_shop.py").write_text(TESTS)
    done = run_pytest(tmp_path, "-p", "no:pytest_alembic")
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_project_s_app_is_given_by_overriding_a_fixture(tmp_path: Path):
    (tmp_path / "test_shop.py").write_text(WITH_APP)
    done = run_pytest(tmp_path, "-p", "no:pytest_alembic")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_plugin_is_registered_for_pytest():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"orchestrator": "orchestrator.testing.plugin"}
