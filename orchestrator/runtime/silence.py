"""A block in which a thread runs no code of the coroutines and generators that are closed in it.

The trace function raises again at the first instruction of every handler, so that none executes. Raising in a
trace function switches tracing off; the hook is built so that this drops its last reference, and its
``__del__`` switches tracing on again for the next handler.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_Trace = Callable[[FrameType, str, Any], Any]

_SUSPENDABLE = 0x20 | 0x80 | 0x100 | 0x200
"""Code flags of generators, coroutines, iterable coroutines and async generators."""


LIMIT = 1000
"""Most refusals while one coroutine is closed. A bound, so that no interplay with signals, other exceptions thrown
into the thread, or another tool's tracing can refuse for ever: past it the code runs, without a workflow."""


class Silence:
    """A block in which this thread runs no handler of a suspended coroutine or generator that is closed."""

    def __init__(self) -> None:
        self.active = False
        self.paused = False
        """True while the collector runs: what it closes may be of some other library."""
        self._before: Any = None
        self._left = LIMIT
        self._frames: set[FrameType] = set()

    def __enter__(self) -> Self:
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
        self._left = LIMIT
        while self._frames:
            frame = self._frames.pop()
            refusal = frame.f_trace
            if isinstance(refusal, _Refusal):
                refusal.spent = True
            frame.f_trace = refusal = None

    def refuse_again(self, frame: FrameType) -> None:
        """Goes on refusing, after a refusal switched tracing off."""
        self._left -= 1
        if self._left < 0:
            return
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

    _silence: Silence
    _frame: FrameType
    spent: bool

    def __new__(cls, silence: Silence, frame: FrameType) -> Self:
        self = super().__new__(cls, _refuse)
        self._silence, self._frame, self.spent = silence, frame, False
        return self

    def __del__(self) -> None:
        if self._silence.active and not self.spent:
            self._silence.refuse_again(self._frame)
