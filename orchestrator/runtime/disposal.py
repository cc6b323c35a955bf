"""Dropping a run's code without running any of it (protocol rules P3 and P13).

Python closes a suspended coroutine by throwing ``GeneratorExit`` into it, and so runs its ``finally`` blocks,
``except BaseException`` clauses and ``__aexit__`` methods: on whichever thread drops the last reference, or
wherever the garbage collector happens to start, even in the middle of another run's code. Two things stop that:

* ``discard`` closes coroutines under a trace function that raises again at the first instruction of every
  handler, so that none executes. Raising in a trace function switches tracing off; the hook is built so that
  this drops its last reference, and its ``__del__`` switches tracing on again for the next handler.
* While the collector runs, the thread has no running loop, so what a finalizer of workflow code calls finds no
  workflow: it can't issue commands into the one that happens to be active.

Limits: ``__del__`` methods of objects do run (without a workflow). A generator that is held by nothing but a
reference cycle is closed by the collector later, and its ``finally`` then runs, without a workflow too.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Self

from orchestrator.runtime.loop import WorkflowLoop

_log = logging.getLogger("orchestrator.runtime")

_Trace = Callable[[FrameType, str, Any], Any]

_SUSPENDABLE = 0x20 | 0x80 | 0x100 | 0x200
"""Code flags of generators, coroutines, iterable coroutines and async generators."""


def discard(left: list[Any]) -> None:
    """Closes suspended coroutines and generators; none of their code runs.

    Args:
        left: Coroutines of tasks, and async generators. Emptied.
    """
    if not left:
        return
    host = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        with _Silence() as silence:
            while left:
                for one in reversed(_chain(left.pop())):
                    _close(one)
                    silence.release()
    finally:
        asyncio._set_running_loop(host)


def _chain(outermost: Any) -> list[Any]:
    """A coroutine, what it awaits, what that awaits, and so on."""
    chain: list[Any] = []
    one = outermost
    while one is not None and hasattr(one, "close"):
        chain.append(one)
        one = getattr(one, "cr_await", None) or getattr(one, "gi_yieldfrom", None)
    return chain


def _close(one: Any) -> None:
    try:
        one.close()
    except (Exception, GeneratorExit) as error:  # noqa: BLE001 - reported, and the others are closed
        _log.warning("Code of a dropped run would not end: %r (%s)", one, error)


class _Silence:
    """A block in which this thread runs no handler of a suspended coroutine or generator that is closed."""

    def __init__(self) -> None:
        self.active = False
        self.paused = False
        """True while the collector runs: what it closes may be of some other library."""
        self._before: Any = None
        self._outer: _Silence | None = None
        self._frames: set[FrameType] = set()

    def __enter__(self) -> Self:
        self._outer = _silences.get(threading.get_ident())
        _silences[threading.get_ident()] = self
        self._before = sys.gettrace()
        self.active = True
        sys.settrace(self.entered)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
        self.active = False
        sys.settrace(self._before)
        if self._outer is None:
            del _silences[threading.get_ident()]
        else:
            _silences[threading.get_ident()] = self._outer

    def entered(self, frame: FrameType, _event: str, _arg: object) -> _Trace | None:
        """Watches a frame that may be resumed with an exception; the trace function of the thread."""
        if self.paused or not frame.f_code.co_flags & _SUSPENDABLE:
            return None
        frame.f_trace_opcodes = True
        return self._watch

    def _watch(self, frame: FrameType, event: str, _arg: object) -> _Trace:
        if event == "exception":
            # Resumed by throwing into it: it is being closed.
            self._frames.add(frame)
            return _Refusal(self, frame)
        frame.f_trace_opcodes = False
        return _ignore

    def release(self) -> None:
        """Lets go of the frames that have ended, and with them of generators they hold, while still refusing."""
        while self._frames:
            frame = self._frames.pop()
            refusal = frame.f_trace
            if isinstance(refusal, _Refusal):
                refusal.spent = True
            frame.f_trace = refusal = None

    def refuse_again(self, frame: FrameType) -> None:
        """Goes on refusing, after a refusal switched tracing off."""
        frame.f_trace = _Refusal(self, frame)
        sys.settrace(self.entered)


def _ignore(_frame: FrameType, _event: str, _arg: object) -> None:
    return None


def _refuse(_frame: FrameType, event: str, _arg: object) -> None:
    if event in ("opcode", "line"):
        raise GeneratorExit


# A partial rather than a method or a closure: the traceback of what it raises must not hold it.
class _Refusal(functools.partial[None]):
    """Refuses to execute the next handler of a frame."""

    _silence: _Silence
    _frame: FrameType
    spent: bool

    def __new__(cls, silence: _Silence, frame: FrameType) -> Self:
        self = super().__new__(cls, _refuse)
        self._silence, self._frame, self.spent = silence, frame, False
        return self

    def __del__(self) -> None:
        if self._silence.active and not self.spent:
            self._silence.refuse_again(self._frame)


_silences: dict[int, _Silence] = {}
"""The block each thread is in."""

_hidden: list[Sequence[Any]] = []


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
