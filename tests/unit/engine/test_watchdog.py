"""The watchdog's signal handler stands before others' handlers, and never calls itself through them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from orchestrator.engine.watchdog import watched


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    found = signal.getsignal(signal.SIGALRM)
    yield
    signal.signal(signal.SIGALRM, found)


def test_an_alarm_of_somebody_else_reaches_the_handler_that_was_there() -> None:
    seen: list[int] = []
    signal.signal(signal.SIGALRM, lambda signum, _frame: seen.append(signum))
    watched(60, lambda _watch: None)
    signal.raise_signal(signal.SIGALRM)
    assert seen == [signal.SIGALRM]


def test_a_handler_that_calls_the_one_it_replaced_is_asked_once() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    watched(60, lambda _watch: None)
    ours = signal.getsignal(signal.SIGALRM)
    assert callable(ours)
    seen: list[int] = []

    def chains(signum: int, frame: FrameType | None) -> None:
        seen.append(signum)
        ours(signum, frame)

    signal.signal(signal.SIGALRM, chains)
    watched(60, lambda _watch: None)
    signal.raise_signal(signal.SIGALRM)
    assert seen == [signal.SIGALRM]
