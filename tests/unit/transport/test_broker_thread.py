"""The thread that talks to the broker: nobody waits longer than wanted, and nothing is left behind."""

import os
import threading
import time
from typing import Any, cast

import pytest
from kombu import Connection

from orchestrator.transport.broker_thread import BrokerThread
from tests.support.waiting import wait_until


class Broker:
    """Stands for connections; counts them."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0

    def connect(self) -> Connection:
        self.opened += 1
        return cast("Connection", self)

    def collect(self, socket_timeout: float | None = None) -> None:
        self.closed += 1


def publishers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "orchestrator-publisher"]


def test_work_runs_on_one_connection_and_its_answer_comes_back():
    broker = Broker()
    thread = BrokerThread(broker.connect)
    assert [thread.call(lambda _, number=number: number, 5) for number in range(3)] == [0, 1, 2]
    assert broker.opened == 1
    thread.close()
    wait_until(lambda: broker.closed == 1)


def test_work_that_fails_is_tried_once_more_on_a_fresh_connection():
    broker, tries = Broker(), []

    def work(_: Any) -> str:
        tries.append(broker.opened)
        if len(tries) == 1:
            raise OSError("the connection was idle for too long")
        return "sent"

    thread = BrokerThread(broker.connect)
    assert thread.call(work, 5) == "sent"
    assert tries == [1, 2]
    thread.close()


def test_an_error_that_stays_reaches_the_caller():
    thread = BrokerThread(Broker().connect)

    def work(_: Any) -> None:
        raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        thread.call(work, 5)
    thread.close()


def test_a_caller_goes_on_at_its_deadline_and_the_next_one_gets_a_new_thread():
    broker, release = Broker(), threading.Event()
    thread = BrokerThread(broker.connect)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        thread.call(lambda _: release.wait(30), 0.1)
    assert time.monotonic() - began < 5
    assert thread.call(lambda _: "next", 5) == "next"
    assert broker.opened == 2
    release.set()
    thread.close()
    wait_until(lambda: not publishers())


def test_callers_of_a_stuck_thread_do_not_pile_up_threads():
    release = threading.Event()
    thread = BrokerThread(Broker().connect)
    before = len(publishers())
    for _ in range(5):
        with pytest.raises(TimeoutError):
            thread.call(lambda _: release.wait(30), 0.02)
    assert len(publishers()) <= before + 5
    release.set()
    thread.close()
    wait_until(lambda: not publishers())


def test_a_connection_that_was_idle_for_long_is_not_trusted():
    broker, now = Broker(), [0.0]
    thread = BrokerThread(broker.connect, monotonic=lambda: now[0])
    thread.call(lambda _: None, 5)
    now[0] = 61.0
    thread.call(lambda _: None, 5)
    assert (broker.opened, broker.closed) == (2, 1)
    thread.close()


def test_a_forked_child_starts_a_thread_of_its_own():
    broker = Broker()
    thread = BrokerThread(broker.connect)
    thread.call(lambda _: None, 5)
    child = os.fork()
    if child == 0:
        os._exit(0 if thread.call(lambda _: broker.opened, 5) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.close()
