"""One event loop per process, on a daemon thread, that runs the async activities.

A worker's slots are processes or threads that call functions; an async activity occupies its slot and
waits for the coroutine on the shared loop, so connection pools bound to a loop can be shared.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, InvalidStateError
from typing import Any, TypeVar

from orchestrator.errors import Cancelled

_T = TypeVar("_T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine on the process's loop in a copy of the caller's context, and waits for it.

    An exception that reaches the waiting thread (a soft time limit, Ctrl-C) cancels the coroutine.
    """
    loop = _running_loop()
    context = contextvars.copy_context()
    done: Future[_T] = Future()
    loop.call_soon_threadsafe(_start, loop, coroutine, context, done)
    try:
        return done.result()
    except BaseException:
        done.cancel()
        raise


def runs_here() -> bool:
    """Tells whether this thread is the one that runs the process's loop, so that it can't wait for it."""
    return _loop is not None and asyncio._get_running_loop() is _loop


def _start(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, _T],
    context: contextvars.Context,
    done: Future[_T],
) -> None:
    task = loop.create_task(coroutine, context=context)

    def finish(ended: asyncio.Task[_T]) -> None:
        # Asked for in any case, else asyncio complains about an exception that nobody saw.
        error = Cancelled("The activity's coroutine was cancelled.") if ended.cancelled() else ended.exception()
        with contextlib.suppress(InvalidStateError):  # nobody waits for it any more
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(ended.result())

    def abandon(waiter: Future[_T]) -> None:
        if waiter.cancelled():
            loop.call_soon_threadsafe(task.cancel)

    task.add_done_callback(finish)
    done.add_done_callback(abandon)


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603 - one loop per process is the point
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="orchestrator-activities", daemon=True).start()
        return _loop


def _forget_after_fork() -> None:
    # The thread did not survive the fork; its loop is of no use in the child.
    global _loop, _lock
    _loop, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
