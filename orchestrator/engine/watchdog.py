"""Stops workflow code that does not give control back (``orchestrator_decision_timeout``).

Code that spins or blocks would hold its worker's slot for ever, and its run would take one slot after the
other. A thread of the process counts the time of each activation and interrupts the one that has had too
much of it: with an exception raised in its thread, and in a process's main thread with a signal, which ends
a blocking call too. Elsewhere a blocking call is interrupted once it returns.

Time is counted in the thread's own ticks, so that a process that was stopped or starved is not blamed for it.
"""

from __future__ import annotations

import ctypes
import math
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final, TypeVar

from orchestrator.errors import DecisionTimeout
from orchestrator.runtime.disposal import note_interruption

T = TypeVar("T")

_TICK: Final = 0.1
_IDLE_TICKS: Final = 50
_REPEAT_TICKS: Final = 5
_ALARM: Final = getattr(signal, "SIGALRM", None)


class OutOfTime(BaseException):
    """Raised inside the code that has had its time; never seen outside this module."""


class Watch:
    """The time that one thread's code may take; made by :func:`watched`."""

    def __init__(self, limit: float) -> None:
        self.thread = threading.get_ident()
        self.ticks = max(1, round(limit / _TICK))
        self.limit = limit
        self.since: float = _dog.ticks
        self.stack: str | None = None
        """Where the code was when its time was over; None while it is not."""

    def renew(self) -> None:
        """Begins the time of the next activation.

        Raises:
            DecisionTimeout: The last one had too much of it, whatever it made of the interruption.
        """
        if self.stack is not None:
            raise self.error()
        self.since = _dog.ticks

    def pause(self) -> None:
        """Stops counting until :meth:`renew`: what follows is not the code's doing."""
        self.renew()
        self.since = math.inf

    def error(self) -> DecisionTimeout:
        """Returns the error that blocks the run."""
        return DecisionTimeout(
            f"Workflow code did not give control back within {self.limit:g} s (orchestrator_decision_timeout). Move "
            f"what computes or waits into an activity; await workflow.sleep instead of time.sleep. It was at: "
            f"{self.stack or 'unknown'}"
        )


def watched(limit: float, work: Callable[[Watch], T]) -> T:
    """Runs ``work`` in this thread, with at most ``limit`` seconds between two calls of :meth:`Watch.renew`.

    Raises:
        DecisionTimeout: It took longer.
    """
    watch = Watch(limit)
    try:
        _dog.begin(watch)
        result = work(watch)
        _dog.end(watch)
        watch.renew()
    except (KeyboardInterrupt, SystemExit):
        _dog.end(watch)
        raise
    except BaseException:
        _dog.end(watch)
        if watch.stack is None:
            raise
        # Whatever the interrupted code made of it, this is the reason.
        raise watch.error() from None
    return result


class _Watchdog:
    def __init__(self) -> None:
        self.ticks = 0
        self._lock = threading.Lock()
        self._wake, self._never = threading.Event(), threading.Event()
        self._watches: dict[int, Watch] = {}
        self._thread: threading.Thread | None = None
        self._replaced: Callable[[int, FrameType | None], object] | None = None
        """The team's own handler of the signal."""
        self._passing_on = False

    def begin(self, watch: Watch) -> None:
        if threading.current_thread() is threading.main_thread():
            self._install_handler()
        with self._lock:
            self._watches[watch.thread] = watch
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="orchestrator-watchdog", daemon=True)
                self._thread.start()
        self._wake.set()

    def end(self, watch: Watch) -> None:
        while True:
            try:
                with self._lock:
                    self._watches.pop(watch.thread, None)
                    if watch.stack is not None:
                        # What was raised a moment ago and has not arrived must not hit what comes next.
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(watch.thread), None)
            except OutOfTime:
                continue
            return

    def _run(self) -> None:
        idle = 0
        while True:
            # Not time.sleep, which tests replace.
            self._never.wait(_TICK)
            self.ticks += 1
            with self._lock:
                watches = list(self._watches.values())
                for watch in watches:
                    over = self.ticks - watch.since - watch.ticks
                    if over > 0 and over % _REPEAT_TICKS == 1:
                        self._interrupt(watch)
            idle = 0 if watches else idle + 1
            if idle > _IDLE_TICKS:
                self._wake.clear()
                if not self._watches:
                    self._wake.wait()
                idle = 0

    def _interrupt(self, watch: Watch) -> None:
        watch.stack = watch.stack or _stack_of(watch.thread)
        note_interruption()
        if _ALARM is not None and watch.thread == threading.main_thread().ident and self._has_handler():
            signal.pthread_kill(watch.thread, _ALARM)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(watch.thread), ctypes.py_object(OutOfTime))

    def _install_handler(self) -> None:
        # Never taken away again: a signal that is still under way would end the process.
        found = signal.getsignal(_ALARM) if _ALARM is not None else None
        if _ALARM is not None and found is not _on_alarm and (found is signal.SIG_DFL or callable(found)):
            self._replaced = found if callable(found) else None
            signal.signal(_ALARM, _on_alarm)

    def _has_handler(self) -> bool:
        return _ALARM is not None and signal.getsignal(_ALARM) is _on_alarm

    def on_alarm(self, signum: int, frame: FrameType | None) -> None:
        watch = self._watches.get(threading.get_ident())
        if watch is not None and watch.stack is not None:
            raise OutOfTime
        if self._replaced is not None and not self._passing_on:
            # The replaced handler may have saved ours, and call it in its turn: it is asked once.
            self._passing_on = True
            try:
                self._replaced(signum, frame)
            finally:
                self._passing_on = False


def _on_alarm(signum: int, frame: FrameType | None) -> None:
    """The one handler, whichever watchdog is on duty: so it is recognised, and never taken for the team's own."""
    _dog.on_alarm(signum, frame)


def _stack_of(thread: int) -> str:
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - there is no other way to see another thread's
    package, places = f"{Path(__file__).parent.parent}{os.sep}", list[str]()
    while frame is not None and len(places) < 5:
        name = frame.f_code.co_filename
        if name.startswith(package):
            if places:
                break
        else:
            places.append(f"{name}:{frame.f_lineno} in {frame.f_code.co_qualname}")
        frame = frame.f_back
    return " < ".join(places)


_dog = _Watchdog()


def _start_afresh() -> None:
    global _dog  # noqa: PLW0603 - the thread does not exist in a forked child
    replaced = _dog._replaced  # noqa: SLF001 - this module's own
    if _ALARM is not None and _dog._has_handler():  # noqa: SLF001 - as above
        signal.signal(_ALARM, replaced or signal.SIG_DFL)
    _dog = _Watchdog()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)

__all__ = ["Watch", "watched"]
