"""How workflow code calls an activity: ``execute`` and ``start``, typed by the activity's own signature."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, cast

from typing_extensions import Unpack

from orchestrator.activity.celery_json import from_celery_json, to_celery_json
from orchestrator.activity.definition import ActivityDefinition
from orchestrator.errors import InvalidArgument
from orchestrator.model.options import ActivityOptions, RetryPolicy
from orchestrator.model.payloads import CallSignature, Payload, PayloadConverter
from orchestrator.runtime import context
from orchestrator.runtime.lines import current_line

P = ParamSpec("P")
R = TypeVar("R")


class OptionArguments(TypedDict, total=False):
    """Options of an activity as keyword arguments; durations are timedelta, or a number of seconds."""

    queue: str | None
    retry_policy: RetryPolicy | None
    start_to_close_timeout: timedelta | float | None
    schedule_to_start_timeout: timedelta | float | None
    schedule_to_close_timeout: timedelta | float | None
    heartbeat_timeout: timedelta | float | None
    priority: int | None


def make_options(arguments: OptionArguments, **internal: Any) -> ActivityOptions:
    """Returns checked options.

    Raises:
        InvalidArgument: An unknown option, or a wrong value; the argument is named.
    """
    known = OptionArguments.__annotations__
    unknown = next((name for name in arguments if name not in known), None)
    if unknown is not None:
        raise InvalidArgument(unknown, f"is no option of an activity; use {', '.join(known)}")
    return ActivityOptions(**cast("dict[str, Any]", arguments), **internal)


class ActivityCalls(Generic[P, R]):
    """What workflow code does with an activity. Mixed into every form that an activity takes."""

    definition: ActivityDefinition
    """The activity itself."""

    @property
    def call_options(self) -> ActivityOptions:
        """Options of a call, before the defaults are filled in."""
        return self.definition.options

    async def execute(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the activity and waits for its result, from workflow code.

        Raises:
            ActivityError: It failed for good, timed out for good, or was cancelled.
            PayloadError: An argument can't be stored as JSON.
            InvalidArgument: The arguments do not fit the signature.
            NotInWorkflow: No workflow code runs here.
        """
        return await self.start(*args, **kwargs)

    def start(self, *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[R]:
        """Schedules the activity and returns at once, from workflow code.

        Returns:
            A future to await; cancelling it cancels the activity.

        Raises:
            PayloadError: An argument can't be stored as JSON.
            InvalidArgument: The arguments do not fit the signature.
            NotInWorkflow: No workflow code runs here.
        """
        return self.schedule(args, kwargs)

    def schedule(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> asyncio.Future[R]:
        """As :meth:`start`, with the arguments in a tuple and a dict."""
        return schedule(self.definition, self.call_options, args, kwargs)

    def with_options(self, **options: Unpack[OptionArguments]) -> ActivityReference[P, R]:
        """Returns the same activity with other options; what is not given stays as it is.

        Args:
            **options: ``queue``, ``retry_policy``, ``start_to_close_timeout``, ``schedule_to_start_timeout``,
                ``schedule_to_close_timeout``, ``heartbeat_timeout``, ``priority`` (0 to 9).

        Raises:
            InvalidArgument: An unknown option or a wrong value.
        """
        said = make_options(options, legacy=self.definition.legacy)
        return ActivityReference(self.definition, said.merged(self.call_options))


class ActivityReference(ActivityCalls[P, R]):
    """An activity with options of its own, to be called from workflow code.

    Args:
        definition: The activity.
        options: Options of this reference's calls.
    """

    def __init__(self, definition: ActivityDefinition, options: ActivityOptions) -> None:
        self.definition = definition
        self._options = options

    @property
    def call_options(self) -> ActivityOptions:
        return self._options

    @property
    def name(self) -> str:
        """Name of the activity."""
        return self.definition.name

    def __repr__(self) -> str:
        return f"<activity {self.name!r} with options>"


def schedule(
    definition: ActivityDefinition, options: ActivityOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> asyncio.Future[Any]:
    """Schedules an activity of the workflow whose code runs here; ``options`` are those of this call."""
    execution = context.current(f"Calling the activity {definition.name!r}")
    payload = encode_call(execution.converter, definition, args, kwargs)
    said = None if options.queue == definition.options.queue else options.queue
    return execution.schedule_activity(
        definition.name,
        said,
        payload,
        options if options.legacy == definition.legacy else replace(options, legacy=definition.legacy),
        definition.result_hint,
        current_line(),
    )


def encode_call(
    converter: PayloadConverter, definition: ActivityDefinition, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Payload:
    """Returns the payload of a call.

    Raises:
        InvalidArgument: The arguments do not fit the signature.
        PayloadError: One can't be stored.
    """
    if not definition.legacy:
        return converter.encode_call(definition.signature, args, kwargs)
    slots, named = definition.signature.bind(args, kwargs)
    plain_args = [to_celery_json(value, slot.label) for value, slot in zip(args, slots, strict=True)]
    plain_kwargs = {name: to_celery_json(value, named[name].label) for name, value in kwargs.items()}
    return converter.encode_call(CallSignature.untyped(), plain_args, plain_kwargs)


def decode_call(
    converter: PayloadConverter, definition: ActivityDefinition, data: bytes
) -> tuple[list[Any], dict[str, Any]]:
    """Returns the arguments of a stored call.

    Raises:
        PayloadError: They can't be read, or do not fit the signature.
    """
    if not definition.legacy:
        return converter.decode_call(data, definition.signature)
    args, kwargs = converter.decode_call(data, CallSignature.untyped())
    return [from_celery_json(value) for value in args], {
        name: from_celery_json(value) for name, value in kwargs.items()
    }
