"""One run's code, as the engine uses it: apply events, replay a history, answer queries."""

from __future__ import annotations

import contextvars
import inspect
import weakref
from collections.abc import Callable, Sequence

from orchestrator.errors import InvalidArgument, NondeterminismError, QueryError, ReplayError
from orchestrator.model.commands import Command
from orchestrator.model.events import Event, EventBody
from orchestrator.model.options import ActivityOptions
from orchestrator.model.payloads import Payload, PayloadConverter
from orchestrator.runtime import comparison
from orchestrator.runtime.definition import WorkflowDefinition
from orchestrator.runtime.execution import Execution
from orchestrator.runtime.info import RunInfo
from orchestrator.types import Micros


class Instance:
    """The code of one run in execution. Used by one thread at a time; after a ReplayError it is of no more use.

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
        self._execution = Execution(definition, info, input, converter=converter, activity_defaults=activity_defaults)

        # Nothing inside refers to this object, so it goes as soon as its user drops it, and the code with it.
        self._drop = weakref.finalize(self, self._execution.dispose)

    def dispose(self) -> None:
        """Drops the run's code without running any of it; dropping the last reference does the same.

        Raises:
            RuntimeError: The code is running.
        """
        self._drop()

    @property
    def closed(self) -> bool:
        """True once the run has ended."""
        return self._execution.closed

    @property
    def wait_names(self) -> list[str]:
        """Names of the signals that are waited for, in the order the waits were opened."""
        return self._execution.signals.wait_names

    @property
    def unhandled_signals(self) -> list[str]:
        """Names of the signals that nobody took, oldest first."""
        return self._execution.signals.unhandled

    @property
    def unfinished_handlers(self) -> list[str]:
        """Names of the signals whose async handler has not ended."""
        return self._execution.signals.unfinished

    @property
    def open_timers(self) -> dict[int, Micros]:
        """Due times of the open timers by number."""
        return self._execution.timers.due_times

    @property
    def open_activities(self) -> dict[int, str]:
        """Names of the open activities by number."""
        return {number: future.name for number, future in self._execution.activities.open.items()}

    def is_open(self, body: EventBody) -> bool:
        """Tells whether an event still concerns the run.

        False when it is about a timer or an activity that was resolved or cancelled, or the run has ended:
        such an event is discarded, never recorded.
        """
        return self._execution.is_open(body)

    def apply(self, body: EventBody, at: Micros) -> list[Command]:
        """Applies one external event and runs the code until it is idle.

        Args:
            body: The event; ``is_open`` holds for it.
            at: Time of the event.

        Returns:
            The commands that the code issued, without the elided ones; a closing command comes last.

        Raises:
            ReplayError: The code can't go on: the run is blocked until it is fixed. Nothing may be recorded.
        """
        return self._execution.apply(body, at)

    def replay(self, events: Sequence[Event], before_each: Callable[[], None] | None = None) -> None:
        """Applies the external events of a history again and compares what the code asks for.

        Args:
            events: The whole history, or what follows the events applied so far.
            before_each: Called before each activation.

        Raises:
            NondeterminismError: The code differs from the history.
            ReplayError: The code can't go on.
        """
        execution = self._execution
        execution.record(events)
        execution.replaying = True
        try:
            position = 0
            while position < len(events):
                cause = events[position]
                end = position + 1
                while end < len(events) and events[end].body.IS_COMMAND:
                    end += 1
                if cause.body.IS_COMMAND or not execution.is_open(cause.body):
                    raise comparison.not_open(cause, ended=execution.closed)
                if before_each is not None:
                    before_each()
                commands = execution.apply(cause.body, cause.at)
                recorded = list(events[position + 1 : end])
                if execution.closed and comparison.is_left_over(events[end:]):
                    recorded.append(events[-1])
                    end = len(events)
                comparison.compare(cause, recorded, commands)
                position = end
        finally:
            execution.replaying = False

    def query(self, name: str, args: bytes) -> Payload:
        """Answers a query; it changes nothing.

        Args:
            name: Name of the query.
            args: Encoded positional arguments.

        Raises:
            QueryError: The type has no such query, the arguments don't fit, the handler raised, or it tried to
                change the run. Drop the instance in the last case: what the handler did before can't be undone.
        """
        execution = self._execution
        query = self.definition.queries.get(name)
        if query is None:
            known = ", ".join(map(repr, sorted(self.definition.queries))) or "none"
            raise QueryError(f"Workflow type {self.definition.name!r} has no query {name!r}; it has {known}.")
        if execution.state is None:
            raise QueryError(f"The run has not begun, so query {name!r} has no answer yet; try again later.")
        try:
            values = execution.converter.decode_args(args, query.hints, names=query.names)
            with execution.active(), execution.reading("A query handler"):
                answer = contextvars.Context().run(getattr(execution.state, query.handler), *values)
            if inspect.iscoroutine(answer):
                answer.close()
                raise InvalidArgument("query", "its handler returned a coroutine; a query can't await")
            return execution.converter.encode(answer, query.result_hint, argument=f"answer of query {name!r}")
        except Exception as error:
            raise QueryError(f"Query {name!r} failed: {type(error).__name__}: {error}") from error


__all__ = ["Instance", "NondeterminismError", "ReplayError", "RunInfo"]
