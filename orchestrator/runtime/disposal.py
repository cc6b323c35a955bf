"""Dropping a run's code without running any of it (protocol rules P3 and P13).

Python closes a suspended coroutine by throwing ``GeneratorExit`` into it, and so runs its ``finally`` blocks,
``except BaseException`` clauses and ``__aexit__`` methods: on whichever thread drops the last reference, or
wherever the garbage collector happens to start, even in the middle of another run's code. Two things stop that:

* ``discard`` closes coroutines while the interpreter refuses to enter any of their handlers.
* While the collector runs, the thread has no running loop, so what a finalizer of workflow code calls finds no
  workflow: it can't issue commands into the one that happens to be active.

Limits: ``__del__`` methods of objects do run (without a workflow). A generator that is held by nothing but a
reference cycle is closed by the collector later, and its ``finally`` then runs, without a workflow too.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from typing import Any

from orchestrator.runtime.handlers import runs_code_when_closed
from orchestrator.runtime.loop import WorkflowLoop
from orchestrator.runtime.silence import Silence

_log = logging.getLogger("orchestrator.runtime")


def discard(left: list[Any]) -> None:
    """Closes suspended coroutines and generators; none of their code runs.

    Args:
        left: Coroutines of tasks, and async generators. Emptied.
    """
    guarded = []
    while left:
        chain = _chain(left.pop())
        if runs_code_when_closed(chain):
            guarded.append(chain)
        else:
            chain[0].close()
    # Else the last one would live on, and end where its code may run.
    chain = []
    if guarded and _interrupted:
        _kept.extend(guarded)
    elif guarded:
        _close_silently(guarded)


def note_interruption() -> None:
    """Tells that code of this process was interrupted by an exception thrown into its thread.

    After that, refusing handlers was seen never to end (CPython 3.11), so coroutines that hold handlers are kept to
    the end of the process instead of being closed: their memory is the price of never hanging and never running them.
    """
    global _interrupted  # noqa: PLW0603 - a fact about the process
    _interrupted = True


def was_interrupted() -> bool:
    """Tells whether :func:`note_interruption` was called in this process."""
    return _interrupted


_interrupted = False
_kept: list[list[Any]] = []


def _close_silently(guarded: list[list[Any]]) -> None:
    thread = threading.get_ident()
    host, outer = asyncio._get_running_loop(), _silences.get(thread)
    asyncio._set_running_loop(None)
    try:
        with Silence() as silence:
            _silences[thread] = silence
            while guarded:
                chain = guarded.pop()
                while chain:
                    # The innermost first, so that no frame is entered by way of another.
                    _close(chain.pop())
                    silence.release()
    finally:
        if outer is None:
            del _silences[thread]
        else:
            _silences[thread] = outer
        asyncio._set_running_loop(host)


def _chain(outermost: Any) -> list[Any]:
    """A coroutine, what it awaits, what that awaits, and so on.

    An async generator stands alone: it can't be closed from outside, and goes with the frame that iterates over it.
    """
    chain: list[Any] = [outermost]
    one = getattr(outermost, "cr_await", None) or getattr(outermost, "gi_yieldfrom", None)
    while one is not None and hasattr(one, "close"):
        chain.append(one)
        one = getattr(one, "cr_await", None) or getattr(one, "gi_yieldfrom", None)
    return chain


def _close(one: Any) -> None:
    try:
        if hasattr(one, "close"):
            one.close()
    except (Exception, GeneratorExit) as error:  # noqa: BLE001 - reported, and the others are closed
        _log.warning("Code of a dropped run would not end: %r (%s)", one, error)


_silences: dict[int, Silence] = {}
"""The block each thread is in."""

_hidden: list[tuple[asyncio.AbstractEventLoop | None, Silence | None]] = []


def _on_collection(phase: str, _info: dict[str, int]) -> None:
    """Hides the workflow while the collector runs. Collections never overlap, so one place to remember is enough."""
    silence = _silences.get(threading.get_ident())
    if phase == "start":
        loop = asyncio._get_running_loop()
        _hidden.append((loop, silence))
        if silence is not None:
            silence.paused = True
        if type(loop) is WorkflowLoop:
            asyncio._set_running_loop(None)
    elif _hidden:
        loop, silence = _hidden.pop()
        if silence is not None:
            silence.paused = False
        if type(loop) is WorkflowLoop:
            asyncio._set_running_loop(loop)


gc.callbacks.append(_on_collection)
