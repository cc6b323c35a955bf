"""Signals inside a run: to a handler, to a wait, or kept until one of them comes (DESIGN §4, points 6 and 7).

A signal with a handler goes to it. Others go to ``wait_for_signal``: waits are served in the order they were
opened, each with the oldest unconsumed signal of its name, and a signal is consumed once. The task that waits is
the first thing to run after a signal was handed to it, so none is lost to a cancellation in between.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.errors import PayloadError, WorkflowCodeError
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from orchestrator.runtime.lines import current_line

if TYPE_CHECKING:
    from orchestrator.runtime.definition import SignalDefinition
    from orchestrator.runtime.execution import Execution
    from orchestrator.types import Micros

UNSET: Any = object()
"""Stands for "no type was given"."""


@dataclass(eq=False)
class _Wait:
    name: str
    future: asyncio.Future[ev.SignalReceived]


class Signals:
    """The signals and signal waits of one run."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._kept: list[ev.SignalReceived] = []
        self._waits: list[_Wait] = []
        self._handling: list[tuple[str, asyncio.Task[None]]] = []

    @property
    def wait_names(self) -> list[str]:
        """Names of the signals that are waited for, in the order the waits were opened."""
        return [wait.name for wait in self._waits]

    @property
    def unhandled(self) -> list[str]:
        """Names of the signals that nobody took, oldest first."""
        return [signal.name for signal in self._kept]

    @property
    def unfinished(self) -> list[str]:
        """Names of the signals whose async handler has not ended."""
        return [name for name, task in self._handling if not task.done()]

    # --- arriving -------------------------------------------------------------------------------

    def receive(self, body: ev.SignalReceived) -> None:
        """Takes a signal: to its handler, else to the oldest wait of its name, else it is kept."""
        handler = self._execution.definition.handler_of(body.name)
        if handler is not None:
            self._handle(handler, body)
            return
        for wait in self._waits:
            if wait.name == body.name and not wait.future.done():
                self._waits.remove(wait)
                wait.future.set_result(body)
                return
        self._kept.append(body)

    def _handle(self, signal: SignalDefinition, body: ev.SignalReceived) -> None:
        handler = getattr(self._execution.state, signal.handler or "")
        args = self._arguments(signal, body)
        if not signal.is_async:
            contextvars.copy_context().run(self._call, handler, args)
            return
        task = self._execution.loop.create_task(self._run(handler, args), name=f"signal {body.name}")
        self._handling = [known for known in self._handling if not known[1].done()]
        self._handling.append((body.name, task))

    def _call(self, handler: Callable[..., object], args: list[Any]) -> None:
        with self._execution.guarded():
            handler(*args)

    async def _run(self, handler: Callable[..., Coroutine[Any, Any, object]], args: list[Any]) -> None:
        # Cancelling this task is the code's own affair, as with any other.
        with self._execution.guarded(), suppress(asyncio.CancelledError):
            await handler(*args)

    def _arguments(self, signal: SignalDefinition, body: ev.SignalReceived) -> list[Any]:
        converter = self._execution.converter
        try:
            if signal.is_dynamic:
                return [body.name, converter.decode_args(body.payload, ())]
            return converter.decode_args(body.payload, signal.hints, names=signal.names)
        except PayloadError as error:
            raise self._execution.block(error, f"the arguments of signal {body.name!r} can't be read") from error

    # --- waiting --------------------------------------------------------------------------------

    async def wait(self, name: str, hint: Any, timeout_us: Micros | None) -> Any:
        """Returns the value of the oldest unconsumed signal of that name, waiting for it if need be.

        Raises:
            TimeoutError: The time passed first; a signal that comes later stays for the next wait.
        """
        execution = self._execution
        hint = self._hint(name, hint)
        kept = next((signal for signal in self._kept if signal.name == name), None)
        if kept is not None:
            self._opened(name, timer=None)
            self._kept.remove(kept)
            return self._value(kept, hint)
        wait = _Wait(name, execution.loop.create_future())
        timer = execution.timers.limit(wait.future, timeout_us, f"wait_for_signal({name!r})")
        self._opened(name, timer=timer.number if timer is not None else None)
        self._waits.append(wait)
        try:
            return self._value(await wait.future, hint)
        finally:
            if timer is not None:
                timer.cancel()
            if wait in self._waits:
                self._waits.remove(wait)

    def _opened(self, name: str, *, timer: int | None) -> None:
        log = self._execution.log
        number = log.next_number()
        log.add(number, cmd.OpenSignalWait(number=number, name=name, timer=timer, line=current_line()))

    def _hint(self, name: str, hint: Any) -> Any:
        definition = self._execution.definition
        declared = definition.declared_signals()
        known = definition.signals.get(name)
        if definition.handler_of(name) is not None:
            problem = f"has a handler, which takes every signal {name!r}, so that this wait would never end"
        elif declared is not None and name not in declared:
            problem = (
                f"declares no signal {name!r}, so that none is accepted; add it to @workflow.defn(signals={{...}})"
            )
        else:
            return (known.hints[0] if known is not None and known.hints else Any) if hint is UNSET else hint
        raise self._execution.block(WorkflowCodeError(f"wait_for_signal: workflow type {definition.name!r} {problem}."))

    def _value(self, signal: ev.SignalReceived, hint: Any) -> Any:
        name = signal.name
        try:
            values = self._execution.converter.decode_args(signal.payload, (hint,), names=(name,))
            if len(values) > 1:
                raise PayloadError(
                    name, f"{len(values)} values were sent, and a wait takes one; send them as one value"
                )
            if not values and hint not in (Any, None, type(None)):
                # Lets the hint decide whether no value will do, as it does for Optional.
                converter = self._execution.converter
                return converter.decode(converter.encode(None).data, hint, argument=name)
        except PayloadError as error:
            raise self._execution.block(error, f"the value of signal {name!r} can't be read") from error
        return values[0] if values else None
