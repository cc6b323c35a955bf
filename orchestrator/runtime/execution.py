"""One run's code in execution: events in, commands out.

An *activation* applies one external event: it makes the run's loop the thread's running loop, changes what the
event says (resolves a future, calls a handler, starts ``run()``), runs the loop until it is idle, settles the
open conditions, and takes the commands that were issued. Live and in replay this is the same code; replay
only mutes the log, hands out recorded side-effect values, and compares afterwards.

Errors that block the run must not be caught by workflow code, so ``block`` remembers them: the loop stops and
the activation raises them, whatever the code does.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from orchestrator.errors import NondeterminismError, PayloadError, ReplayError, WorkflowCodeError
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from orchestrator.model.failures import encode_failure, failure_from_exception
from orchestrator.runtime.activities import Activities
from orchestrator.runtime.commandlog import CommandLog
from orchestrator.runtime.ending import blocking_error
from orchestrator.runtime.lines import current_line
from orchestrator.runtime.loop import DurableTimer, make_loop
from orchestrator.runtime.signals import Signals
from orchestrator.runtime.waits import Conditions

if TYPE_CHECKING:
    from orchestrator.model.options import ActivityOptions
    from orchestrator.model.payloads import PayloadConverter
    from orchestrator.runtime.definition import WorkflowDefinition
    from orchestrator.runtime.info import RunInfo
    from orchestrator.types import Micros


class Execution:
    """The state of one run's code. Used by one thread at a time.

    Args:
        definition: The workflow type.
        info: Facts about the run.
        input: Encoded positional arguments of ``run()``.
        converter: Encodes and decodes payloads.
        activity_defaults: Options for what an activity call does not say.
    """

    def __init__(
        self,
        definition: WorkflowDefinition,
        info: RunInfo,
        input: bytes,  # noqa: A002 - the word of the contract and of the store
        *,
        converter: PayloadConverter,
        activity_defaults: ActivityOptions,
    ) -> None:
        self.definition = definition
        self.info = info
        self.converter = converter
        self.now: Micros = info.started_at
        self.replaying = False
        self.closed = False
        self.state: Any = None
        """The instance of a workflow class; None for a function, and before the first event."""
        self.loop = make_loop(self, self)
        self.log = CommandLog(self.loop)
        self.activities = Activities(self, activity_defaults)
        self.signals = Signals(self)
        self.conditions = Conditions(self)
        self.timers: dict[int, tuple[DurableTimer, Micros]] = {}
        self._input = input
        self._context = contextvars.Context()
        self._begun = False
        self._main: asyncio.Task[None] | None = None
        self._cancel_reason: str | None = None
        self._fatal: ReplayError | None = None
        self._side_effects: Mapping[int, ev.SideEffectRecorded] = {}
        self._generators: dict[str, random.Random] = {}

    # --- applying events ------------------------------------------------------------------------

    def is_open(self, body: ev.EventBody) -> bool:
        """Tells whether the event still concerns the run."""
        if self.closed:
            return False
        match body:
            case ev.TimerFired():
                return body.number in self.timers
            case ev.ActivityCompleted() | ev.ActivityFailed():
                return body.number in self.activities.open
            case ev.RunStarted():
                return self._main is None
        return True

    def apply(self, body: ev.EventBody, at: Micros) -> list[cmd.Command]:
        """Applies one external event and returns the commands it led to.

        Args:
            body: The event.
            at: Its time.

        Raises:
            ReplayError: The code can't go on; the execution is of no more use.
        """
        if self._fatal is not None:
            raise self._fatal
        if not self.is_open(body):
            raise NondeterminismError(
                f"The run waits for nothing like {type(body).__name__}; discard the event instead."
            )
        self.now = max(self.now, at)
        self.loop.elapsed_us = self.now - self.info.started_at
        if isinstance(body, (ev.RunTerminated, ev.RunTimedOut)):
            self.closed = self.loop.stopped = True
            return []
        self.loop.muted = self.replaying
        with self.active():
            self._context.run(self._activate, body)
        # Read through a name of its own: activating is what sets it.
        fatal: ReplayError | None = self._fatal
        if fatal is not None:
            raise fatal
        return self.log.take()

    def _activate(self, body: ev.EventBody) -> None:
        try:
            if not self._begun:
                self._begin()
            if not self.loop.stopped:
                self._change(body)
        except ReplayError as error:
            self.block(error)
        while not self.loop.stopped:
            self.loop.run_until_idle()
            if self.loop.stopped or not self.conditions.settle():
                break

    def _change(self, body: ev.EventBody) -> None:
        match body:
            case ev.ActivityCompleted():
                self.activities.complete(body)
            case ev.ActivityFailed():
                self.activities.fail(body)
            case ev.TimerFired():
                timer, _ = self.timers.pop(body.number)
                self.loop.fire(timer)
            case ev.SignalReceived():
                self.signals.receive(body)
            case ev.RunStarted():
                self._start()
            case ev.CancelRequested():
                self._cancel_reason = body.reason
                if self._main is not None:
                    self._main.cancel()
            case _:
                raise NondeterminismError(f"{type(body).__name__} is no event that a run can be given.")

    def _begin(self) -> None:
        self._begun = True
        if self.definition.cls is None:
            return
        try:
            self.state = self.definition.cls()
        except Exception as error:  # noqa: BLE001 - an error in __init__ is one of the workflow's code
            self.end_with(error)

    def _start(self) -> None:
        definition = self.definition
        try:
            args = self.converter.decode_args(self._input, definition.input_hints, names=definition.input_names)
        except PayloadError as error:
            raise self.block(error, "the workflow's input can't be read") from error
        run = definition.run if self.state is None else definition.run.__get__(self.state)
        self._main = self.loop.create_task(self._run(run, args), name="run")
        if self._cancel_reason is not None:
            # After the first step: the code sees the cancellation at its first await, and may clean up.
            self.loop.call_soon(self._main.cancel)

    async def _run(self, run: Callable[..., Any], args: list[Any]) -> None:
        try:
            result = await run(*args)
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever leaves run() ends the run or blocks it
            self.end_with(error)
            return
        try:
            payload = self.converter.encode(result, self.definition.result_hint, argument="result")
        except PayloadError as error:
            self.end_with(error)
        else:
            self._close(cmd.CompleteRun(result=payload.data))

    # --- ending ---------------------------------------------------------------------------------

    def end_with(self, error: BaseException) -> None:
        """Ends the run, or blocks it, with what left its code."""
        if self.closed or self._fatal is not None:
            return
        blocked = blocking_error(error)
        if blocked is not None:
            self._fatal = blocked
            self.loop.stopped = True
        elif isinstance(error, asyncio.CancelledError) and self._cancel_reason is not None:
            self._close(cmd.CancelRun(reason=self._cancel_reason))
        else:
            self._close(cmd.FailRun(failure=encode_failure(self.converter, failure_from_exception(error))))

    def block(self, error: Exception, what: str = "") -> ReplayError:
        """Remembers an error that blocks the run, stops the loop, and returns what to raise."""
        if isinstance(error, ReplayError):
            blocked: ReplayError = error
        else:
            blocked = WorkflowCodeError(f"Workflow type {self.definition.name!r}: {what}: {error}")
            blocked.__cause__ = error
        if self._fatal is None:
            self._fatal = blocked
        self.loop.stopped = True
        return blocked

    def _close(self, command: cmd.CloseRun) -> None:
        self.log.close(command)
        self.closed = self.loop.stopped = True

    # --- replay ---------------------------------------------------------------------------------

    def record(self, events: Sequence[ev.Event]) -> None:
        """Makes the side effects that a history holds known, before it is replayed."""
        self._side_effects = {
            event.body.number: event.body for event in events if isinstance(event.body, ev.SideEffectRecorded)
        }

    def side_effect(self, name: str, function: Callable[[], Any], hint: Any) -> Any:
        """Returns the recorded value, or calls the function and records what it returns."""
        number = self.log.next_number()
        if self.replaying:
            recorded = self._side_effects.get(number)
            if recorded is None:
                raise self.block(
                    NondeterminismError(
                        f"Workflow code differs from its history: the code asked for the side effect {name!r} as command "
                        f"{number} at {current_line()}, but its history holds none of that number. Deploy the code that "
                        "wrote this history, or code that does the same up to there; the run then goes on by itself."
                    )
                )
            data = recorded.value
        else:
            data = self._performed(name, function, hint)
        self.log.add(number, cmd.RecordSideEffect(number=number, name=name, value=data, line=current_line()))
        try:
            return self.converter.decode(data, hint, argument=name or "side effect")
        except PayloadError as error:
            raise self.block(error, f"the recorded value of side effect {name!r} can't be read") from error

    def _performed(self, name: str, function: Callable[[], Any], hint: Any) -> bytes:
        try:
            with self.reading("The function of a side_effect"):
                value = function()
        except Exception as error:
            # Not recorded, so replay would call it again: the decision is tried again as a whole.
            raise self.block(error, f"the function of side effect {name!r} raised {type(error).__name__}") from error
        if asyncio.iscoroutine(value):
            value.close()
        return self.converter.encode(value, hint, argument=name or "side effect").data

    # --- what workflow code asks for ------------------------------------------------------------

    def schedule_activity(
        self,
        name: str,
        queue: str | None,
        payload: Any,
        options: ActivityOptions,
        result_hint: Any = Any,
        line: str = "",
    ) -> asyncio.Future[Any]:
        """Asks for an activity.

        Args:
            name: Name of the activity.
            queue: The queue that workflow code wrote, else None.
            payload: The encoded call.
            options: What the call and the definition say.
            result_hint: Type of the result.
            line: The line of workflow code; found on the stack when empty.

        Returns:
            A future of the result; it raises ActivityError. Cancelling it cancels the activity.
        """
        return self.activities.schedule(name, queue, payload, options, result_hint, line)

    def start_timer(self, timer: DurableTimer, duration_us: Micros) -> None:
        """Opens a timer for a duration from the time of the present event."""
        self._open_timer(timer, self.now + duration_us, duration_us)

    def start_timer_at(self, timer: DurableTimer, due_at: Micros) -> None:
        """Opens a timer for an absolute instant."""
        self._open_timer(timer, due_at, None)

    def _open_timer(self, timer: DurableTimer, due_at: Micros, duration_us: Micros | None) -> None:
        number = self.log.next_number()
        timer.host, timer.number, timer.open = self, number, True
        self.timers[number] = (timer, due_at)
        self.log.add(number, cmd.StartTimer(number=number, due_at=due_at, duration_us=duration_us, line=current_line()))

    def cancel_timer(self, timer: DurableTimer) -> None:
        """Cancels an open timer; one of the present activation leaves no trace."""
        if self.loop.stopped:
            return
        number = self.log.next_number()
        del self.timers[timer.number]
        if not self.log.elide(timer.number):
            self.log.add(number, cmd.CancelTimer(number=number, target=timer.number, line=current_line()))

    def start_timeout(self, future: asyncio.Future[Any], timeout_us: Micros | None, what: str) -> DurableTimer | None:
        """Opens the timer that ends a wait with TimeoutError; None without a time-out."""
        if timeout_us is None:
            return None

        def time_out() -> None:
            if not future.done():
                future.set_exception(TimeoutError(f"{what} timed out after {timeout_us / 1_000_000:g} s"))

        timer = DurableTimer(self.loop.time() + timeout_us / 1_000_000, time_out, (), self.loop, None)
        self.start_timer(timer, timeout_us)
        return timer

    async def sleep(self, duration_us: Micros) -> None:
        """Sleeps on a durable timer, also for zero."""
        timer, future = self._alarm()
        self.start_timer(timer, duration_us)
        await self._sleep_on(timer, future)

    async def sleep_until(self, instant: Micros) -> None:
        """Sleeps until an instant, on a durable timer."""
        timer, future = self._alarm()
        self.start_timer_at(timer, instant)
        await self._sleep_on(timer, future)

    def _alarm(self) -> tuple[DurableTimer, asyncio.Future[None]]:
        future = self.loop.create_future()

        def ring() -> None:
            if not future.done():
                future.set_result(None)

        return DurableTimer(self.loop.time(), ring, (), self.loop, None), future

    async def _sleep_on(self, timer: DurableTimer, future: asyncio.Future[None]) -> None:
        try:
            await future
        finally:
            timer.cancel()

    def generator(self, purpose: str) -> random.Random:
        """Returns the run's random generator for a purpose, seeded by the run id."""
        self.log.check_writable()
        found = self._generators.get(purpose)
        if found is None:
            found = self._generators[purpose] = random.Random(f"{self.info.run_id}/{purpose}")
        return found

    # --- the thread -----------------------------------------------------------------------------

    @contextmanager
    def active(self) -> Iterator[None]:
        """Makes this run's loop the thread's running loop inside the block."""
        host = asyncio._get_running_loop()
        task = asyncio.current_task(host) if host is not None else None
        hooks = sys.get_asyncgen_hooks()
        if host is not None and task is not None:
            asyncio.tasks._leave_task(host, task)
        asyncio._set_running_loop(self.loop)
        sys.set_asyncgen_hooks(firstiter=self.loop.keep_generator, finalizer=None)
        try:
            yield
        finally:
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(host)
            if host is not None and task is not None:
                asyncio.tasks._enter_task(host, task)

    @contextmanager
    def reading(self, who: str) -> Iterator[None]:
        """Refuses commands inside the block, in the name of ``who``."""
        before, self.loop.read_only = self.loop.read_only, who
        try:
            yield
        finally:
            self.loop.read_only = before
