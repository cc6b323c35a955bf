"""The pytest plugin, in a project of its own."""

import re
import subprocess
import sys
import tomllib

import pytest

from orchestrator import testing
from tests.support.processes import ROOT

TESTS = """
from orchestrator import activity, workflow


@activity.defn(name="shop.charge")
def charge(order_id: str) -> str:
    return "really charged"


@workflow.defn(name="shop.pay")
async def pay(order_id: str) -> str:
    await workflow.sleep(86400)
    return await charge.execute(order_id)


def test_a_workflow(workflow_environment):
    workflow_environment.stub(charge, returns="paid")
    assert workflow_environment.run(pay, "42") == "paid"


def test_an_activity(activity_environment):
    assert activity_environment.run(charge, "42") == "really charged"
"""

WITH_APP = """
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
"""


PAGE = ROOT / "docs/testing.md"
NAMES = re.findall(r"^def (test_\w+)", PAGE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest prints of a project with three files: plain tests, one with an app, and those of the page."""
    project = tmp_path_factory.mktemp("project")
    (project / "test_shop.py").write_text(TESTS)
    (project / "test_app.py").write_text(WITH_APP)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (project / "test_page.py").write_text("\n\n".join(blocks))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "orchestrator.testing.plugin", f"--rootdir={project}"],
        cwd=project,
        # No other plugin takes part, as in a project that has none.
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_fixtures_are_there_in_a_project_of_its_own(report: str):
    assert "PASSED test_shop.py::test_a_workflow\n" in report, report
    assert "PASSED test_shop.py::test_an_activity\n" in report


def test_a_project_s_app_is_given_by_overriding_a_fixture(report: str):
    assert "PASSED test_app.py::test_the_app_s_settings_hold\n" in report, report


@pytest.mark.parametrize("name", NAMES)
def test_each_example_of_the_page_passes(report: str, name: str):
    assert f"PASSED test_page.py::{name}\n" in report, report


def test_importing_the_plugin_imports_no_other_part_of_the_kit():
    code = "import sys, orchestrator.testing.plugin; print([m for m in sys.modules if m.startswith('orchestrator.testing')])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "['orchestrator.testing', 'orchestrator.testing.plugin']"


def test_all_public_names_are_there_and_no_others():
    assert set(testing.__all__) == {"INFO", "ActivityCall", "ActivityEnvironment", "WorkflowEnvironment"}
    assert all(getattr(testing, name) for name in testing.__all__)
    with pytest.raises(AttributeError, match="WorkflowEnviroment"):
        testing.WorkflowEnviroment  # noqa: B018


def test_the_plugin_is_registered_for_pytest():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"orchestrator": "orchestrator.testing.plugin"}
