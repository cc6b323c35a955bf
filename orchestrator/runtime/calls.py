"""Calling an activity that is given as a value: an activity, a name, or a Celery signature.

What a name or a signature means is known above this layer, so :mod:`orchestrator.activity` says so here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from orchestrator.errors import ConfigurationError, InvalidArgument


class Activity(Protocol):
    """An activity as workflow code calls it."""

    def with_options(self, **options: Any) -> Activity:
        """Returns the same activity with other options."""
        ...

    def schedule(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> asyncio.Future[Any]:
        """Schedules it and returns the future of its result."""
        ...


Resolver = Callable[[Any], "tuple[Activity, tuple[Any, ...], dict[str, Any]]"]
"""Returns the activity that a value stands for, and the arguments that the value itself holds.

Raises InvalidArgument when it stands for none.
"""

_resolvers: list[Resolver] = []


def set_activity_resolver(resolver: Resolver) -> None:
    """Says what names and signatures mean; called once, by :mod:`orchestrator.activity`."""
    _resolvers[:] = [resolver]


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
    if not _resolvers:
        raise ConfigurationError("Import orchestrator.activity before calling activities by name.")
    left = dict(options)
    given, named = left.pop("args", None), left.pop("kwargs", None)
    if given is not None and args:
        raise InvalidArgument("args", "is given twice, by position and as args=")
    for value, argument, kind in ((given, "args", (list, tuple)), (named, "kwargs", dict)):
        if value is not None and not isinstance(value, kind):
            raise InvalidArgument(argument, f"give a {'dict' if kind is dict else 'list'}, not {type(value).__name__}")
    activity, own_args, own_kwargs = _resolvers[0](target)
    if left:
        activity = activity.with_options(**left)
    return await activity.schedule((*own_args, *args, *(given or ())), {**own_kwargs, **(named or {})})
