"""What a person sees while a command waits."""

import os
import pty
import threading
from contextlib import contextmanager
from typing import Any

import pytest

from orchestrator.cli import waiting
from orchestrator.cli.output import Output, age
from tests.unit.cli.conftest import Shop


class Watcher:
    """Somebody who looks at the progress line."""

    is_seen = True

    def __init__(self) -> None:
        self.lines: list[str] = []

    def update(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def watcher(monkeypatch: pytest.MonkeyPatch) -> Watcher:
    """A terminal with somebody in front of it."""
    made = Watcher()

    @contextmanager
    def progress(self: Output, text: str) -> Any:
        made.lines.append(text)
        yield made

    monkeypatch.setattr(Output, "progress", progress)
    monkeypatch.setattr(waiting, "LOOK_EVERY", 0.05)
    return made


def test_while_it_waits_it_says_what_the_workflow_waits_for(shop: Shop, watcher: Watcher):
    shop.json("start", "client.busy", "--id", "w")
    assert "after 0.5 s" in shop.error("result", "w", "--timeout", "0.5")
    assert "waits for a worker" in watcher.lines[-1]
    shop.decide()
    assert "after 0.5 s" in shop.error("result", "w", "--timeout", "0.5")
    assert "client.charge (attempt 1), client.ship (attempt 1), signal 'go'" in watcher.lines[-1]
    assert watcher.lines[-1].startswith("w: RUNNING, ")


def test_a_timer_is_what_it_waits_for_when_there_is_nothing_else(shop: Shop, watcher: Watcher):
    shop.json("start", "client.patient", "--id", "w")
    shop.decide()
    shop.error("result", "w", "--timeout", "0.5")
    assert "a timer, due in 23h 59m" in watcher.lines[-1]


def test_a_watched_result_comes_as_soon_as_it_is_there(shop: Shop, watcher: Watcher):
    shop.json("start", "client.echo", "a", "--id", "w")
    timer = threading.Timer(0.3, shop.decide)
    timer.start()
    assert shop.text("result", "w", "--timeout", "20") == "a\n"
    timer.join()


def test_on_a_terminal_the_line_is_drawn_and_its_text_is_safe():
    parent, child = pty.openpty()
    with os.fdopen(child, "w") as terminal, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", terminal)
        patch.setenv("TERM", "xterm")
        with Output(as_json=False).progress("Waiting") as progress:
            assert progress.is_seen
            progress.update("[red]w\x1b[2J")
        with Output(as_json=True).progress("Waiting") as progress:
            assert not progress.is_seen
        drawn = os.read(parent, 65536).decode()
    os.close(parent)
    assert "[red]w\\x1b[2J" in drawn
    assert "\x1b[2J" not in drawn


def test_ages_read_as_people_say_them():
    from datetime import UTC, datetime, timedelta

    now = datetime.now(UTC)
    assert age(now) == "0s ago"
    assert age(now - timedelta(seconds=75)) == "1m 15s ago"
    assert age(now + timedelta(days=3, seconds=1)) in {"in 3d", "in 2d 23h"}
