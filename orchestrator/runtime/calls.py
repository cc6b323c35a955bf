"""Calling an activity that is given as a value: an activity, a name, or a Celery signature.

A name alone is enough to schedule an activity. What is known above this layer, the options a name was defined
with and what a signature holds, :mod:`orchestrator.activity` adds through ``set_activity_resolver``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Protocol

from orchestrator.errors import InvalidArgument
from orchestrator.model.names import check_name
from orchestrator.model.options import ActivityOptions
from orchestrator.model.payloads import CallSignature
from orchestrator.runtime.context import current

_INTERNAL = {"legacy", "celery_options"}


class CallableActivity(Protocol):
    """An activity as workflow code calls it."""

    def with_options(self, **options: Any) -> CallableActivity:
        """Returns the same activity with other options."""
        ...

    def schedule(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> asyncio.Future[Any]:
        """Schedules it and returns the future of its result."""
        ...


Resolved = tuple[CallableActivity, tuple[Any, ...], dict[str, Any]]
"""An activity, and the arguments that came with it."""

_resolvers: list[Callable[[Any], Resolved | None]] = []


def set_activity_resolver(resolver: Callable[[Any], Resolved | None]) -> None:
    """Says what names and signatures stand for; called once, by :mod:`orchestrator.activity`.

    Args:
        resolver: Returns the activity that a value stands for, and the arguments that the value itself holds;
            None for a name that is not known here.
    """
    _resolvers[:] = [resolver]


class NamedActivity:
    """An activity of which only the name is known here.

    Args:
        name: Its name.
        options: Options of the call.
    """

    def __init__(self, name: str, options: ActivityOptions | None = None) -> None:
        self.name = name
        self._options = options or ActivityOptions()

    def with_options(self, **options: Any) -> NamedActivity:
        """Returns the same activity with other options.

        Raises:
            InvalidArgument: An unknown option, or a wrong value.
        """
        known = [field.name for field in fields(ActivityOptions) if field.name not in _INTERNAL]
        unknown = next((name for name in options if name not in known), None)
        if unknown is not None:
            raise InvalidArgument(unknown, f"is no option of an activity; use {', '.join(known)}")
        return NamedActivity(self.name, ActivityOptions(**options).merged(self._options))

    def schedule(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> asyncio.Future[Any]:
        """Schedules it and returns the future of its result, as plain JSON."""
        execution = current(f"Calling the activity {self.name!r}")
        payload = execution.converter.encode_call(CallSignature.untyped(), args, kwargs)
        return execution.schedule_activity(self.name, self._options.queue, payload, self._options)


async def call_activity(target: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Runs an activity and returns its result.

    Args:
        target: An activity, a name or a Celery signature.
        args: Positional arguments.
        options: ``args`` and ``kwargs`` in place of ``args``, and options of the call.

    Raises:
        ActivityError: It failed.
        InvalidArgument: The target, an argument or an option is refused.
    """
    left = dict(options)
    given, named = left.pop("args", None), left.pop("kwargs", None)
    if given is not None and args:
        raise InvalidArgument("args", "are given twice; give them by position or as args=, not both")
    if not (given is None or isinstance(given, (list, tuple))):
        raise InvalidArgument("args", f"give a list, not {type(given).__name__}")
    if not (named is None or isinstance(named, dict)):
        raise InvalidArgument("kwargs", f"give a dict, not {type(named).__name__}")
    if not all(isinstance(name, str) for name in named or ()):
        raise InvalidArgument("kwargs", "give a dict of names and values; each name is text (str)")
    activity, own_args, own_kwargs = _resolve(target)
    if left:
        activity = activity.with_options(**left)
    return await activity.schedule((*own_args, *args, *(given or ())), {**own_kwargs, **(named or {})})


def _resolve(target: Any) -> Resolved:
    for resolver in _resolvers:
        found = resolver(target)
        if found is not None:
            return found
    if not isinstance(target, str):
        raise InvalidArgument(
            "activity", f"give an activity, its name or a Celery signature, not {type(target).__name__}"
        )
    return NamedActivity(check_name(target, "activity")), (), {}
