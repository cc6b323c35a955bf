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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from orchestrator.errors import NondeterminismError, PayloadError, ReplayError, WorkflowCodeError
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from orchestrator.model.failures import encode_failure, failure_from_exception
from orchestrator.runtime import ordering
from orchestrator.runtime.activation import Activation
from orchestrator.runtime.activities import Activities
from orchestrator.runtime.commandlog import CommandLog
from orchestrator.runtime.disposal import discard
from orchestrator.runtime.ending import PASSING, Blocked, blocking_error, is_exit_call
from orchestrator.runtime.lines import current_line
from orchestrator.runtime.loop import make_loop
from orchestrator.runtime.signals import Signals
from orchestrator.runtime.timers import Timers
from orchestrator.runtime.waits import Conditions

if TYPE_CHECKING:
    from orchestrator.model.options import ActivityOptions
    from orchestrator.model.payloads import PayloadConverter
    from orchestrator.runtime.definition import WorkflowDefinition
    from orchestrator.runtime.info import RunInfo
    from orchestrator.types import Micros

ordering.install()


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
        self.timers = Timers(self)
        self.log_fields = {
            "workflow_id": info.workflow_id,
            "run_id": info.run_id,
            "workflow_type": info.workflow_type,
        }
        """What each log record of this run carries."""
        self.loop = make_loop(self.timers, self)
        self.log = CommandLog(self.loop)
        self.activities = Activities(self, activity_defaults)
        self.signals = Signals(self)
        self.conditions = Conditions(self)
        self._input = input
        self._context = contextvars.Context()
        self._begun = False
        self._replayed = False
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
                return self.timers.is_open(body.number)
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
        self._raise_fatal()
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
        if self._replayed and not self.replaying:
            # Their errors were logged by the process that ran them live.
            self.loop.review_tasks(report=False)
        self._replayed = self.replaying
        with self.active():
            self._context.run(self._activate, body)
        self._raise_fatal()
        if not self.replaying:
            self.loop.review_tasks(report=True)
        return self.log.take()

    def _raise_fatal(self) -> None:
        if self._fatal is not None:
            raise self._fatal

    def _activate(self, body: ev.EventBody) -> None:
        try:
            if not self._begun:
                self._begin()
            if not self.loop.stopped:
                self._change(body)
            self.loop.run_until_idle()
            while self.conditions.settle():
                self.loop.run_until_idle()
        except Blocked:
            # What blocks the run was remembered when it was raised.
            pass

    def _change(self, body: ev.EventBody) -> None:
        match body:
            case ev.ActivityCompleted():
                self.activities.complete(body)
            case ev.ActivityFailed():
                self.activities.fail(body)
            case ev.TimerFired():
                self.timers.fire(body.number)
            case ev.SignalReceived():
                self.signals.receive(body)
            case ev.RunStarted():
                self._start()
            case ev.CancelRequested():
                self._cancel_reason = body.reason
                if self._main is not None:
                    self._main.cancel()
            case _:
                raise self.block(NondeterminismError(f"{type(body).__name__} is no event that a run can be given."))

    def _begin(self) -> None:
        self._begun = True
        if self.definition.cls is None:
            return
        with self.guarded():
            self.state = self.definition.cls()

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
        result: Any = None
        with self.guarded():
            result = await run(*args)
        if self.loop.stopped:
            return
        try:
            payload = self.converter.encode(result, self.definition.result_hint, argument="result")
        except PayloadError as error:
            self.end_with(error)
        else:
            self._close(cmd.CompleteRun(result=payload.data))

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Ends the run, or blocks it, with what leaves the code inside the block."""
        try:
            yield
        except PASSING as error:
            if not is_exit_call(error):
                raise
            self.end_with(error)
        except BaseException as error:  # noqa: BLE001 - whatever leaves the code ends the run or blocks it
            self.end_with(error)

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

    def block(self, error: Exception, what: str = "") -> Blocked:
        """Remembers an error that blocks the run, stops the loop, and returns what to raise at once."""
        if isinstance(error, ReplayError):
            blocked: ReplayError = error
        else:
            blocked = WorkflowCodeError(f"Workflow type {self.definition.name!r}: {what}: {error}")
            blocked.__cause__ = error
        if self._fatal is None:
            self._fatal = blocked
        self.loop.stopped = True
        return Blocked(str(blocked))

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
            data, refused = recorded.value, recorded.refused
        else:
            data, refused = self._performed(name, function, hint)
        self.log.add(
            number,
            cmd.RecordSideEffect(number=number, name=name, value=data, refused=refused, line=current_line()),
        )
        try:
            value = self.converter.decode(data, Any if refused else hint, argument=name or "side effect")
        except PayloadError as error:
            raise self.block(error, f"the recorded value of side effect {name!r} can't be read") from error
        if refused:
            raise PayloadError(*value)
        return value

    def _performed(self, name: str, function: Callable[[], Any], hint: Any) -> tuple[bytes, bool | None]:
        try:
            with self.reading("The function of a side_effect"):
                value = function()
        except Exception as error:
            # Not recorded, so replay would call it again: the decision is tried again as a whole.
            raise self.block(error, f"the function of side effect {name!r} raised {type(error).__name__}") from error
        if asyncio.iscoroutine(value):
            value.close()
        try:
            return self.converter.encode(value, hint, argument=name or "side effect").data, None
        except PayloadError as error:
            # Recorded too: the code may catch it and go on, and replay does not call the function.
            return self.converter.encode([error.argument, error.reason]).data, True

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

    def generator(self, purpose: str) -> random.Random:
        """Returns the run's random generator for a purpose, seeded by the run id."""
        self.log.check_writable()
        found = self._generators.get(purpose)
        if found is None:
            found = self._generators[purpose] = random.Random(f"{self.info.run_id}/{purpose}")
        return found

    def dispose(self) -> None:
        """Drops the run's code without running any of it. The execution is of no more use."""
        if self.loop.active:
            raise RuntimeError("The code of this run is running; it can't be dropped in the middle of an activation.")
        self.closed = True
        left = self.loop.take_coroutines()
        self.activities.open.clear()
        self.timers.forget()
        self.state = self._main = None
        discard(left)

    # --- the thread -----------------------------------------------------------------------------

    def active(self) -> Activation:
        """Makes this run's loop the thread's running loop inside a ``with`` block."""
        return Activation(self.loop)

    @contextmanager
    def reading(self, who: str) -> Iterator[None]:
        """Refuses commands inside the block, in the name of ``who``."""
        before, self.loop.read_only = self.loop.read_only, who
        try:
            yield
        finally:
            self.loop.read_only = before
