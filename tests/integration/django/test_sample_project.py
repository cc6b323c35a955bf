"""The sample project of the documentation, as its processes: web server, worker or `workflow dev`."""

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.integration.django.conftest import entry
from tests.support.fixtures.processes import ProcessFactory, WorkerFactory
from tests.support.ports import free_port
from tests.support.processes import ROOT
from tests.support.waiting import wait_until

pytest.importorskip("django")

PROJECT = ROOT / "docs/django_sample"

# What `celery -A shop` is where the package is installed, entry point included.
CELERY = """
import sys
from celery.bin.celery import celery, main
from orchestrator.cli import workflow
celery.add_command(workflow)
sys.argv = ["celery", "-A", "shop", *sys.argv[1:]]
sys.exit(main())
"""


@dataclass
class Project:
    """The project on one database and one broker."""

    env: Mapping[str, str]
    start_process: ProcessFactory
    port: int

    def manage(self, *args: str) -> str:
        """Runs `python manage.py …` to its end and returns what it printed."""
        return self._to_its_end([sys.executable, "manage.py", *args])

    def celery(self, *args: str) -> str:
        """Runs `celery -A shop …` to its end and returns what it printed."""
        return self._to_its_end([sys.executable, "-c", CELERY, *args])

    def serve(self) -> None:
        """Starts the web server and waits for it."""
        command = [sys.executable, "manage.py", "runserver", "--noreload", f"127.0.0.1:{self.port}"]
        server = self.start_process(command, env=self.env, cwd=PROJECT)
        wait_until(
            lambda: self._answers() or not server.is_running(),
            40,
            message=server.logs,
            ignoring=(urllib.error.URLError,),
        )

    def dev(self) -> None:
        """Starts everything but the web server in one process."""
        self.start_process([sys.executable, "-c", CELERY, "workflow", "dev"], env=self.env, cwd=PROJECT)

    def get(self, path: str) -> dict[str, Any]:
        """Asks the web server."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
            return json.load(answer)

    def post(self, path: str, **form: object) -> dict[str, Any]:
        """Posts a form to the web server."""
        data = urllib.parse.urlencode(form).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", data, timeout=20) as answer:
            return json.load(answer)

    def _answers(self) -> bool:
        try:
            self.get("/orders/0/")
        except urllib.error.HTTPError as error:
            return error.code == 404
        return False

    def _to_its_end(self, command: list[str]) -> str:
        process = self.start_process(command, env=self.env, cwd=PROJECT)
        assert process.wait(60) == 0, process.logs()
        return process.logs()


@pytest.fixture
def make_project(start_process: ProcessFactory) -> Callable[[str, str], Project]:
    """Makes the project on the database and the broker of two URLs."""

    def make(database: str, broker: str) -> Project:
        env = {f"DB_{key}": str(value) for key, value in entry(database).items()}
        return Project({**env, "BROKER_URL": broker, "PYTHONPATH": f"{ROOT}:{PROJECT}"}, start_process, free_port())

    return make


def an_order_is_placed_and_sent(project: Project) -> None:
    placed = project.post("/orders/", item="book", cents=999)
    path = f"/orders/{placed['order']}/"
    wait_until(lambda: project.get(path)["status"] == "paid", 30, message=lambda: str(project.get(path)))
    project.post(f"{path}packed/", parcel="P1")
    wait_until(
        lambda: project.get(path) == {"status": "sent", "workflow": "COMPLETED"},
        30,
        message=lambda: str(project.get(path)),
    )


def test_on_postgresql_and_rabbitmq(
    make_project: Callable[[str, str], Project],
    empty_postgres_url: str,
    rabbitmq_url: str,
    celery_worker_process: WorkerFactory,
):
    project = make_project(empty_postgres_url, rabbitmq_url)
    project.manage("migrate")
    project.celery("workflow", "migrate")
    celery_worker_process("shop", env=project.env)
    project.serve()
    an_order_is_placed_and_sent(project)
    # An order that nobody takes is rolled back; nothing of it starts.
    with pytest.raises(urllib.error.HTTPError, match="500"):
        project.post("/orders/", item="book", cents="many")
    listed = project.celery("workflow", "list")
    assert len(re.findall(r"order-\d+", listed)) == 1
    assert "No changes detected" in project.manage("makemigrations", "--check", "--dry-run")


def test_on_sqlite_without_any_server(make_project: Callable[[str, str], Project], empty_sqlite_url: str):
    project = make_project(empty_sqlite_url, "memory://")
    project.manage("migrate")
    project.celery("workflow", "migrate")
    project.dev()
    project.serve()
    an_order_is_placed_and_sent(project)


def test_its_own_tests_pass(make_project: Callable[[str, str], Project], empty_sqlite_url: str):
    printed = make_project(empty_sqlite_url, "memory://").manage("test", "-v", "2")
    assert re.search(r"Ran 4 tests", printed), printed


def test_what_the_page_shows_is_what_the_project_holds():
    page = (ROOT / "docs/django.md").read_text()
    blocks = re.findall(r"^```python\n# (\S+)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 4
    for path, code in blocks:
        assert code.strip("\n") in (PROJECT / path).read_text(), path


def test_all_python_of_the_page_is_of_the_project():
    page = (ROOT / "docs/django.md").read_text()
    assert page.count("```python\n") == len(re.findall(r"^```python\n# \S+\.py\n", page, re.MULTILINE))
