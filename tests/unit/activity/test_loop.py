"""The event loop that runs a process's async activities."""

import asyncio
import contextvars
import os
import threading

import pytest

from orchestrator.activity import loop
from orchestrator.errors import Cancelled
from tests.support.waiting import wait_until

name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="none")


async def whoami() -> tuple[str, int]:
    await asyncio.sleep(0)
    return name.get(), threading.get_ident()


def test_coroutines_of_all_threads_share_one_loop_and_see_their_callers_context():
    token = name.set("caller")
    first, thread = loop.run(whoami())
    name.reset(token)
    assert first == "caller"
    assert loop.run(whoami()) == ("none", thread)
    assert thread != threading.get_ident()


def test_an_error_comes_out_as_it_was_raised():
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        loop.run(fail())


def test_a_coroutine_that_cancels_itself_is_an_ordinary_error():
    async def give_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(Cancelled):
        loop.run(give_up())


def test_an_exception_in_the_waiting_thread_cancels_the_coroutine(monkeypatch: pytest.MonkeyPatch):
    seen: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    def interrupted(self: object, timeout: object = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        loop.run(endless())
    wait_until(lambda: seen)


def test_a_forked_child_makes_a_loop_of_its_own():
    loop.run(whoami())
    child = os.fork()
    if child == 0:
        os._exit(0 if loop.run(whoami())[0] == "none" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
