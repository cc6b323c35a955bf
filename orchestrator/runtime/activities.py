"""The open activities of a run, as workflow code awaits them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from orchestrator.errors import ActivityError, ApplicationError, FailureCause, PayloadError
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from orchestrator.model.failures import Failure, decode_failure, exception_from_failure
from orchestrator.model.options import DEFAULT_ACTIVITY_OPTIONS, LEGACY_ACTIVITY_OPTIONS, ActivityOptions
from orchestrator.model.payloads import Payload
from orchestrator.runtime.lines import current_line
from orchestrator.runtime.loop import WorkflowFuture

if TYPE_CHECKING:
    from orchestrator.runtime.execution import Execution


class ActivityFuture(WorkflowFuture[Any]):
    """The outcome of one activity. Cancelling it (or the task that awaits it) cancels the activity."""

    def __init__(self, owner: Activities, *, number: int, name: str, result_hint: Any, loop: Any) -> None:
        super().__init__(loop=loop)
        self.number = number
        self.name = name
        self.result_hint = result_hint
        self._owner = owner

    def cancel(self, msg: Any | None = None) -> bool:
        self._owner.check_writable()
        if not super().cancel(msg):
            return False
        self._owner.cancelled(self)
        return True


class Activities:
    """Schedules activities and hands their outcomes to whoever awaits them.

    Args:
        execution: The run they belong to.
        defaults: Options for what neither the call nor the definition says.
    """

    def __init__(self, execution: Execution, defaults: ActivityOptions) -> None:
        self._execution = execution
        self._defaults = _merged(defaults, DEFAULT_ACTIVITY_OPTIONS)
        self.open: dict[int, ActivityFuture] = {}

    def check_writable(self) -> None:
        """Refuses when a query or a predicate runs."""
        self._execution.log.check_writable()

    def schedule(
        self, name: str, queue: str | None, payload: Payload, options: ActivityOptions, result_hint: Any, line: str
    ) -> asyncio.Future[Any]:
        """Asks for an activity and returns the future of its result."""
        execution = self._execution
        number = execution.log.next_number()
        future = ActivityFuture(self, number=number, name=name, result_hint=result_hint, loop=execution.loop)
        self.open[number] = future
        execution.log.add(
            number,
            cmd.ScheduleActivity(
                number=number,
                name=name,
                queue=queue,
                input=payload.data,
                input_digest=payload.digest,
                options=_merged(options, LEGACY_ACTIVITY_OPTIONS if options.legacy else self._defaults),
                line=line or current_line(),
            ),
        )
        return future

    def cancelled(self, future: ActivityFuture) -> None:
        """Records that workflow code cancelled an activity, unless it was scheduled in this very activation."""
        log = self._execution.log
        self.open.pop(future.number, None)
        number = log.next_number()
        if not log.elide(future.number):
            log.add(number, cmd.CancelActivity(number=number, target=future.number, line=current_line()))

    def complete(self, body: ev.ActivityCompleted) -> None:
        """Gives the result to whoever awaits it."""
        future = self.open.pop(body.number)
        try:
            value = self._execution.converter.decode(body.result, future.result_hint)
        except PayloadError as error:
            raise self._execution.block(error, f"the result of activity {future.name!r} can't be read") from error
        future.set_result(value)

    def fail(self, body: ev.ActivityFailed) -> None:
        """Raises the failure in whoever awaits it."""
        future = self.open.pop(body.number)
        try:
            failure = decode_failure(self._execution.converter, body.failure)
        except PayloadError as error:
            raise self._execution.block(error, f"the failure of activity {future.name!r} can't be read") from error
        future.set_exception(_activity_error(failure, future, body.attempt))


_known: dict[tuple[int, int], tuple[ActivityOptions, ActivityOptions, ActivityOptions]] = {}


def _merged(options: ActivityOptions, over: ActivityOptions) -> ActivityOptions:
    """Merges options, once for each pair of objects: a definition has the same ones at each call, and merging checks."""
    key = id(options), id(over)
    known = _known.get(key)
    if known is None:
        if len(_known) >= 1000:
            _known.clear()
        # The two are kept with the result, so that their ids stay theirs.
        known = _known[key] = (options, over, options.merged(over))
    return known[2]


def _activity_error(failure: Failure, future: ActivityFuture, attempt: int) -> ActivityError:
    cause = exception_from_failure(failure)
    if not isinstance(cause, FailureCause):
        cause = ApplicationError(failure.message, type=failure.type, failure=failure)
    # Built from recorded values only, so that live and replayed code see the same text.
    return ActivityError(
        f"Activity {future.name!r} failed (attempt {attempt}): {failure.type}: {failure.message}",
        activity=future.name,
        number=future.number,
        attempt=attempt,
        cause=cause,
        failure=failure,
    )
