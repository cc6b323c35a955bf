"""The activity environment: one activity, called as a worker calls it, without a workflow."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar, cast, overload

from celery import Task, current_app

from orchestrator.activity import loop
from orchestrator.activity.calls import ActivityCalls, decode_call, encode_call
from orchestrator.activity.context import ActivityInfo, RunningActivity, encoded_details, entered
from orchestrator.activity.definition import ActivityDefinition
from orchestrator.errors import InvalidArgument
from orchestrator.model.names import check_callable, check_instance, check_int, check_text
from orchestrator.model.payloads import CallSignature, PayloadConverter
from orchestrator.testing.targets import definition_behind

P = ParamSpec("P")
R = TypeVar("R")

_SCHEDULED = datetime(2030, 1, 1, tzinfo=UTC)
_REASON_LIMIT = 10_000

INFO = ActivityInfo(
    activity="activity",
    task_id="test-workflow/test-run/activity:1.1",
    idempotency_key="test-run/1",
    workflow_id="test-workflow",
    run_id="test-run",
    workflow_type="TestWorkflow",
    namespace="default",
    number=1,
    scheduled_at=_SCHEDULED,
    started_at=_SCHEDULED,
)
"""What ``activity.info()`` tells in an activity environment, unless a test says otherwise."""


class _Attempt(RunningActivity):
    """An attempt whose heartbeats go to a test."""

    def __init__(self, info: ActivityInfo, beat: Callable[[tuple[Any, ...]], None]) -> None:
        super().__init__(info)
        self._beat = beat

    def heartbeat(self, details: tuple[Any, ...]) -> None:
        # Encoded as in production, so that details which can't be stored are noticed here.
        encoded_details(self.info._converter, details)  # noqa: SLF001 - as its base does
        self._beat(details)
        self.raise_if_cancelled()


@dataclass(frozen=True)
class _Call:
    definition: ActivityDefinition
    function: Callable[..., Any]
    attempt: _Attempt
    args: list[Any]
    kwargs: dict[str, Any]


class ActivityEnvironment:
    """Runs activities by themselves, to be unit-tested: with an attempt to ask, heartbeats and cancellation.

    Arguments and results are stored and read back as in production, so what can't be stored is noticed here.

    Args:
        info: What ``activity.info()`` tells; start from :data:`INFO` with ``dataclasses.replace``. The activity's
            name is filled in.
        attempt: Which attempt it is, from 1.
        heartbeat_details: What an earlier attempt last gave to ``activity.heartbeat``.
        on_heartbeat: Called with the details of each heartbeat, before it is known whether to stop; may call
            ``cancel``.

    Raises:
        InvalidArgument: An argument is refused; it is named.
        PayloadError: The heartbeat details can't be stored.
    """

    def __init__(
        self,
        *,
        info: ActivityInfo = INFO,
        attempt: int = 1,
        heartbeat_details: Sequence[Any] | None = None,
        on_heartbeat: Callable[..., object] | None = None,
    ) -> None:
        self.heartbeats: list[tuple[Any, ...]] = []
        """Details of all heartbeats so far, in order."""
        self._converter = PayloadConverter()
        check_instance(info, "info", ActivityInfo, "an ActivityInfo; start from orchestrator.testing.INFO")
        details = None
        if heartbeat_details is not None:
            if not isinstance(heartbeat_details, (list, tuple)):
                raise InvalidArgument("heartbeat_details", f"give a list, not {type(heartbeat_details).__name__}")
            details = encoded_details(self._converter, heartbeat_details)
        number = check_int(attempt, "attempt", minimum=1)
        self._info = replace(info, attempt=number, _details=details or info._details)  # noqa: SLF001
        self._on_heartbeat = None if on_heartbeat is None else check_callable(on_heartbeat, "on_heartbeat")
        self._attempts: list[_Attempt] = []
        self._cancelled: str | None = None
        self._stopping = False

    def cancel(self, reason: str = "The activity was cancelled.") -> None:
        """Lets the next heartbeat raise Cancelled, in what runs now and in what is run later.

        Args:
            reason: The error's message.

        Raises:
            InvalidArgument: The reason is no text.
        """
        self._cancelled = check_text(reason, "reason", _REASON_LIMIT)
        for attempt in self._attempts:
            attempt.cancelled = self._cancelled

    def shut_down_worker(self) -> None:
        """Lets ``activity.is_worker_shutting_down()`` answer True, in what runs now and in what is run later."""
        self._stopping = True
        for attempt in self._attempts:
            attempt.worker_stopping = True

    @overload
    def run(self, activity: ActivityCalls[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def run(self, activity: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def run(self, activity: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def run(self, activity: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Runs an activity and returns its result.

        Args:
            activity: An activity or a plain function, ``def`` or ``async def`` (that runs on the loop which async
                activities share), or a Celery task.
            *args: Its arguments.
            **kwargs: Its keyword arguments.

        Raises:
            Exception: Whatever the activity raises, unchanged.
            InvalidArgument: The arguments do not fit its signature, or it is no activity.
            PayloadError: An argument or the result can't be stored.
        """
        call = self._call(activity, args, kwargs)
        with entered(call.attempt):
            result = call.function(*call.args, **call.kwargs)
            if inspect.iscoroutine(result):
                result = loop.run(result)
        return self._stored(call, result)

    @overload
    async def arun(self, activity: ActivityCalls[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    async def arun(self, activity: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    async def arun(self, activity: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    async def arun(self, activity: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Runs an activity on the caller's own loop: the form of :meth:`run` for async tests."""
        call = self._call(activity, args, kwargs)
        with entered(call.attempt):
            result = call.function(*call.args, **call.kwargs)
            if inspect.iscoroutine(result):
                result = await result
        return self._stored(call, result)

    def _call(self, activity: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        definition = _definition_of(activity)
        payload = encode_call(self._converter, definition, args, kwargs)
        stored_args, stored_kwargs = decode_call(self._converter, definition, payload.data)
        attempt = _Attempt(replace(self._info, activity=definition.name), self._beat)
        attempt.cancelled, attempt.worker_stopping = self._cancelled, self._stopping
        self._attempts.append(attempt)
        function = _task_of(activity, definition) if definition.legacy else definition.function
        assert function is not None
        return _Call(definition, function, attempt, stored_args, stored_kwargs)

    def _beat(self, details: tuple[Any, ...]) -> None:
        self.heartbeats.append(details)
        if self._on_heartbeat is not None:
            self._on_heartbeat(*details)

    def _stored(self, call: _Call, result: Any) -> Any:
        hint = Any if call.definition.legacy else call.definition.signature.return_hint
        data = self._converter.encode(result, hint, argument="result").data
        return self._converter.decode(data, call.definition.result_hint, argument="result")


def _definition_of(activity: object) -> ActivityDefinition:
    known = definition_behind(activity)
    if known is not None:
        return known
    if inspect.isroutine(activity):
        return ActivityDefinition(name=activity.__name__, function=activity, signature=CallSignature.of(activity))
    raise InvalidArgument("activity", f"give an activity, a function or a Celery task, not {type(activity).__name__}")


def _task_of(activity: object, definition: ActivityDefinition) -> Callable[..., Any]:
    task = activity if isinstance(activity, Task) else current_app.tasks[definition.name]
    return cast("Callable[..., Any]", task)
