"""A deterministic asyncio event loop: no selector, no threads, no clock of its own.

What it guarantees (protocol rule P3):

* Callbacks run in the order they were asked for, and only inside ``run_until_idle``.
* Time stands still during an activation. A delay above zero becomes a durable timer of the run; a timer's
  callback runs when, and only when, the history says that this timer fired.
* Tasks and futures hash by their number of creation, so that sets of them (``TaskGroup``, ``asyncio.wait``)
  iterate alike in every process.
* The loop holds every pending task and every async generator, so that the garbage collector never finishes one.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar

from orchestrator.errors import InsideWorkflow
from orchestrator.model.names import check_duration
from orchestrator.runtime.ending import is_exit_call
from orchestrator.runtime.refusals import RefusingLoop
from orchestrator.types import SECOND, Micros

_T = TypeVar("_T")

_log = logging.getLogger("orchestrator.workflow")


class TimerHost(Protocol):
    """Who turns delays into durable timers."""

    def start_timer(self, timer: DurableTimer, duration_us: Micros) -> None:
        """Opens a timer for a duration above zero and gives it its number."""
        ...

    def cancel_timer(self, timer: DurableTimer) -> None:
        """Cancels an open timer."""
        ...


class Callback(asyncio.Handle):
    """One callback that waits for its turn."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: WorkflowLoop,
        context: contextvars.Context | None,
    ) -> None:
        # Not the base's constructor: it asks the loop for its debug mode each time.
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class DurableTimer(asyncio.TimerHandle):
    """A callback that waits for a timer of the run; ``number`` is 0 when it is only a turn of the loop."""

    __slots__ = ("host", "number", "open")

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: WorkflowLoop,
        context: contextvars.Context | None,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.host: TimerHost | None = None
        self.number = 0
        self.open = False

    def cancel(self) -> None:
        if self.open and self.host is not None:
            self.host.cancel_timer(self)
        asyncio.Handle.cancel(self)


class WorkflowFuture(asyncio.Future[_T]):
    """A future that hashes by its number of creation."""

    def __init__(self, *, loop: WorkflowLoop) -> None:
        self._order = loop.next_order()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._order


class WorkflowTask(asyncio.Task[_T]):
    """A task that hashes by its number of creation."""

    def __init__(
        self,
        coro: Generator[Any, None, _T] | Coroutine[Any, Any, _T],
        *,
        loop: WorkflowLoop,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> None:
        self._order = loop.next_order()
        # An unnamed task of asyncio takes its name from a counter of the whole process.
        super().__init__(coro, loop=loop, name=name or f"Task-{self._order}", context=context)
        # asyncio keeps all tasks of all threads in one weak set by hash: ours would collide there with those
        # of every other run. The loop holds them instead.
        asyncio.tasks._unregister_task(self)  # meant for task classes of one's own

    def __hash__(self) -> int:
        return self._order


class WorkflowLoop(RefusingLoop):
    """The event loop of one run.

    Args:
        host: What opens and cancels durable timers.
        owner: The execution that workflow code in this loop belongs to.
    """

    def __init__(self, host: TimerHost, owner: Any) -> None:
        self.owner = owner
        self.elapsed_us: Micros = 0
        """Time of the event being applied, since the start of the run."""
        self.active = False
        """True while workflow code may run."""
        self.read_only = ""
        """Who may only read at the moment (a query, a predicate); empty: nobody."""
        self.muted = False
        """True in replay and when the run is dropped: nothing is logged."""
        self.stopped = False
        """True once the run has ended: nothing runs any more."""
        self._host = host
        self._ready: deque[asyncio.Handle] = deque()
        self._order = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self._prune_at = 64
        self._generators: list[AsyncGenerator[Any, Any]] = []
        self._prune_generators_at = 64

    def next_order(self) -> int:
        """Returns the next number of creation."""
        self._order += 1
        return self._order

    # --- what asyncio and workflow code call ----------------------------------------------------

    def time(self) -> float:
        """Returns the time of the event being applied, in seconds since the start of the run."""
        return self.elapsed_us / SECOND

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Runs the callback in this activation, after those asked for before."""
        if self.read_only:
            raise InsideWorkflow(f"{self.read_only} only reads: it can't start or wake anything in the workflow.")
        handle = Callback(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Runs the callback when a durable timer of ``delay`` seconds fires; at once when it is not above zero."""
        timer = DurableTimer(self.time() + delay, callback, args, self, context)
        if delay <= 0:
            self._turn(timer)
        else:
            self._host.start_timer(timer, check_duration(delay, "delay"))
        return timer

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Runs the callback when the loop's time reaches ``when`` (seconds since the start of the run)."""
        timer = DurableTimer(when, callback, args, self, context)
        if when <= self.time():
            self._turn(timer)
        else:
            check_duration(when - self.time(), "when")
            # Whole microseconds before the subtraction: the difference of two floats is not the delay that was added.
            self._host.start_timer(timer, max(1, round(when * SECOND) - self.elapsed_us))
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        """Returns a future that hashes by its number of creation."""
        return WorkflowFuture(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, _T] | Coroutine[Any, Any, _T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[_T]:
        """Returns a task that hashes by its number of creation."""
        if self.read_only:
            if asyncio.iscoroutine(coro):
                coro.close()
            raise InsideWorkflow(f"{self.read_only} only reads: it can't start a task in the workflow.")
        task = WorkflowTask(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        if len(self._tasks) > self._prune_at:
            self._tasks = [known for known in self._tasks if not known.done()]
            self._prune_at = max(64, 2 * len(self._tasks))
        return task

    def get_task_factory(self) -> None:
        """Returns None: the tasks are the loop's own."""
        return

    def get_debug(self) -> bool:
        """Returns False: debug mode reads the clock."""
        return False

    def is_running(self) -> bool:
        """Returns True: workflow code only runs inside an activation."""
        return True

    def is_closed(self) -> bool:
        """Tells whether the run has ended."""
        return self.stopped

    def get_exception_handler(self) -> None:
        """Returns None: errors that nobody awaits are logged."""
        return

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Logs an error that nobody awaits."""
        self.call_exception_handler(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Logs an error that nobody awaits, once: not in replay."""
        if self.muted:
            return
        message, error = context.get("message", "Error in workflow code"), context.get("exception")
        _log.error("%s", message, exc_info=error, extra=self.owner.log_fields)

    # --- what the execution calls ---------------------------------------------------------------

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        """Returns the tasks that are not done, oldest first."""
        return [task for task in self._tasks if not task.done()]

    def review_tasks(self, *, report: bool) -> None:
        """Lets go of the tasks that are done.

        Args:
            report: Log the errors that nobody has awaited. asyncio leaves that to the garbage collector, which
                comes at any time, or after the run was dropped.
        """
        pending = []
        for task in self._tasks:
            if not task.done():
                pending.append(task)
            elif task._log_traceback:
                task._log_traceback = False
                if report:
                    # Not task.exception(): the code may still await it.
                    message = f"{task.get_name()} ended with an error, and nothing has awaited it: {task!r}"
                    self.call_exception_handler({"message": message, "exception": task._exception})
        self._tasks = pending
        self._prune_at = max(64, 2 * len(pending))

    def fire(self, timer: DurableTimer) -> None:
        """Lets the callback of a timer run next."""
        timer.open = False
        self._ready.append(timer)

    def run_until_idle(self) -> None:
        """Runs callbacks until none is left, or the run has ended."""
        ready = self._ready
        while ready and not self.stopped:
            handle = ready.popleft()
            if handle._cancelled:
                continue
            try:
                handle._context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
            except SystemExit as error:
                if not is_exit_call(error):
                    raise
                self.owner.end_with(error)
            except Exception as error:  # noqa: BLE001 - as asyncio: what a callback raises is nobody's
                self.call_exception_handler({"message": f"Error in {handle!r}", "exception": error})

    def keep_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Holds an async generator until it is exhausted, so that the collector never finishes it."""
        self._generators.append(generator)
        if len(self._generators) > self._prune_generators_at:
            self._generators = [known for known in self._generators if known.ag_frame is not None]  # type: ignore[attr-defined]
            self._prune_generators_at = max(64, 2 * len(self._generators))

    def take_coroutines(self) -> list[Any]:
        """Gives up what is left, for good: returns the coroutines and generators that never ended."""
        self.stopped = self.muted = True
        left: list[Any] = []
        for task in self.pending_tasks():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            left.append(task.get_coro())
        left.extend(generator for generator in self._generators if generator.ag_frame is not None)  # type: ignore[attr-defined]
        self._tasks, self._generators = [], []
        self._ready.clear()
        return left

    def _turn(self, timer: DurableTimer) -> None:
        if self.read_only:
            raise InsideWorkflow(f"{self.read_only} only reads: it can't start a timer.")
        self._ready.append(timer)


def make_loop(host: TimerHost, owner: Any) -> WorkflowLoop:
    """Returns a loop; the methods that type checkers miss in its class are there, and refuse."""
    return WorkflowLoop(host, owner)  # type: ignore[abstract]
