"""The thread behind every background service of a worker."""

import logging

import pytest

from orchestrator.worker.periodic import Periodic
from tests.support.waiting import wait_until


def test_it_works_again_and_again_until_it_is_stopped():
    calls: list[int] = []
    periodic = Periodic("test", 0.005, lambda: calls.append(1))
    periodic.start()
    wait_until(lambda: len(calls) >= 3)
    periodic.stop()
    count = len(calls)
    assert len(calls) == count


def test_waking_it_does_not_wait_for_the_interval():
    calls: list[int] = []
    periodic = Periodic("test", 3600, lambda: calls.append(1))
    periodic.start()
    wait_until(lambda: calls)
    periodic.wake()
    wait_until(lambda: len(calls) == 2)
    periodic.stop()


def test_an_error_does_not_end_it_and_is_told_once(caplog: pytest.LogCaptureFixture):
    calls: list[int] = []

    def fail() -> None:
        calls.append(1)
        raise OSError("the database is away")

    periodic = Periodic("test", 0.005, fail)
    with caplog.at_level(logging.INFO):
        periodic.start()
        wait_until(lambda: len(calls) >= 4)
        periodic.stop()
    assert len([record for record in caplog.records if "test failed" in record.getMessage()]) == 1
