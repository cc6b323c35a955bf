"""The open timers of a run: what ``asyncio.sleep`` and time-outs turn into.

A timer is due at the time of the event that led to it plus its duration, in whole microseconds. Its callback
runs when, and only when, the history says that this timer fired.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from orchestrator.model import commands as cmd
from orchestrator.runtime.lines import current_line
from orchestrator.runtime.loop import DurableTimer
from orchestrator.types import SECOND, Micros

if TYPE_CHECKING:
    from orchestrator.runtime.execution import Execution


class Timers:
    """Opens, fires and cancels durable timers.

    Args:
        execution: The run they belong to.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._open: dict[int, tuple[DurableTimer, Micros]] = {}

    @property
    def due_times(self) -> dict[int, Micros]:
        """Due times of the open timers by number."""
        return {number: due_at for number, (_, due_at) in self._open.items()}

    def is_open(self, number: int) -> bool:
        """Tells whether the timer of that number has neither fired nor been cancelled."""
        return number in self._open

    def start_timer(self, timer: DurableTimer, duration_us: Micros) -> None:
        """Opens a timer for a duration from the time of the present event."""
        self._start(timer, self._execution.now + duration_us, duration_us)

    def _start(self, timer: DurableTimer, due_at: Micros, duration_us: Micros | None) -> None:
        log = self._execution.log
        number = log.next_number()
        timer.host, timer.number, timer.open = self, number, True
        self._open[number] = (timer, due_at)
        log.add(number, cmd.StartTimer(number=number, due_at=due_at, duration_us=duration_us, line=current_line()))

    def cancel_timer(self, timer: DurableTimer) -> None:
        """Cancels an open timer; one of the present activation leaves no trace."""
        if self._execution.loop.stopped:
            return
        log = self._execution.log
        number = log.next_number()
        timer.open = False
        del self._open[timer.number]
        if not log.elide(timer.number):
            log.add(number, cmd.CancelTimer(number=number, target=timer.number, line=current_line()))

    def fire(self, number: int) -> None:
        """Lets the callback of an open timer run next."""
        timer, _ = self._open.pop(number)
        self._execution.loop.fire(timer)

    def forget(self) -> None:
        """Drops all timers; the run is over."""
        self._open.clear()

    # --- what is made of them -------------------------------------------------------------------

    async def sleep(self, duration_us: Micros) -> None:
        """Sleeps on a durable timer, also for zero."""
        timer, future = self._alarm()
        self.start_timer(timer, duration_us)
        await _wait(timer, future)

    async def sleep_until(self, instant: Micros) -> None:
        """Sleeps until an instant, on a durable timer, also when it has passed."""
        timer, future = self._alarm()
        self._start(timer, instant, None)
        await _wait(timer, future)

    def limit(self, future: asyncio.Future[Any], timeout_us: Micros | None, what: str) -> DurableTimer | None:
        """Opens the timer that ends a wait with TimeoutError; returns None without a time-out."""
        if timeout_us is None:
            return None

        def time_out() -> None:
            if not future.done():
                future.set_exception(TimeoutError(f"{what} timed out after {timeout_us / SECOND:g} s"))

        timer = self._timer(time_out)
        self.start_timer(timer, timeout_us)
        return timer

    def _alarm(self) -> tuple[DurableTimer, asyncio.Future[None]]:
        future = self._execution.loop.create_future()

        def ring() -> None:
            if not future.done():
                future.set_result(None)

        return self._timer(ring), future

    def _timer(self, callback: Any) -> DurableTimer:
        loop = self._execution.loop
        return DurableTimer(loop.time(), callback, (), loop, None)


async def _wait(timer: DurableTimer, future: asyncio.Future[None]) -> None:
    try:
        await future
    finally:
        timer.cancel()
