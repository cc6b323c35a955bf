"""``make demo`` as a newcomer runs it: it ends by itself, nothing is done twice, nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
ENDINGS = ("shipped", "out of stock", "card declined", "not approved", "undeliverable", "stuck for ever")


def start_demo(tmp_path: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "activities.demo", "--orders", "14", *options],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path), "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def servers(tmp_path: Path) -> list[int]:
    """The server processes that work in this test's own directory."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            is_server = b"activities.demo.server" in (process / "cmdline").read_bytes()
            if is_server and f"TMPDIR={tmp_path}\0".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except (OSError, ValueError):
            continue
    return found


def wait_for(condition, what: str, seconds: float = 60.0) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def table(output: str) -> dict[str, list[str]]:
    """The rows of the final table by their label."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines() if line.startswith("│")]
    return {row[0]: row[1:] for row in rows}


def test_the_demo_survives_its_kill_and_twice_gives_the_same_picture(tmp_path: Path) -> None:
    pictures = []
    for _ in range(2):
        began = time.monotonic()
        demo = start_demo(tmp_path)
        output, _ = demo.communicate()
        took = time.monotonic() - began
        assert demo.returncode == 0, output
        assert took < 120, f"{took:.0f} s\n{output}"
        rows = table(output)
        assert rows["effects applied twice"][0] == "0", output
        assert rows["stuck for ever"][0] == "0", output
        assert re.search(r"kill -9 \d+ at \d+% of the steps of the workflows: the process is gone", output), output
        assert re.search(r"All \d+ open workflows go on from the database", output), output
        assert "░" in output
        assert "▲" in output
        pictures.append({label: rows[label][0] for label in ENDINGS if label in rows})
    assert pictures[0] == pictures[1]
    assert list(tmp_path.iterdir()) == []
    assert servers(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    demo = start_demo(tmp_path)
    wait_for(lambda: len(servers(tmp_path)) == 2, "both servers start")
    demo.send_signal(number)
    output, _ = demo.communicate()
    assert demo.returncode == 130, output
    assert "Interrupted" in output
    assert list(tmp_path.iterdir()) == []
    assert servers(tmp_path) == []


def test_the_servers_of_a_driver_that_is_killed_end_by_themselves(tmp_path: Path) -> None:
    demo = start_demo(tmp_path)
    wait_for(lambda: len(servers(tmp_path)) == 2, "both servers start")
    demo.kill()
    demo.communicate()
    wait_for(lambda: not servers(tmp_path), "servers end with their driver")


@pytest.mark.parametrize("options", [["--orders", "1"], ["--orders", "ten"], ["--database", "mysql://localhost/x"]])
def test_wrong_options_are_refused_with_a_hint(options: list[str], tmp_path: Path) -> None:
    demo = start_demo(tmp_path, *options)
    output, _ = demo.communicate()
    assert demo.returncode == 2
    assert options[0] in output


@pytest.mark.postgresql
@pytest.mark.rabbitmq
@pytest.mark.skipif(
    not entry_points(group="celery.commands", name="workflow"), reason="install the library: pip install -e ."
)
def test_the_demo_does_the_same_on_a_broker_and_a_database_server(
    tmp_path: Path, rabbitmq_url: str, postgres_server_url: str
) -> None:
    demo = start_demo(tmp_path, "--broker", rabbitmq_url, "--database", postgres_server_url)
    output, _ = demo.communicate()
    assert demo.returncode == 0, output
    rows = table(output)
    assert rows["effects applied twice"][0] == rows["stuck for ever"][0] == "0", output
    assert list(tmp_path.iterdir()) == []
