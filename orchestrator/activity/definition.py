"""What an activity is: a function (or a plain Celery task), its name and its options.

A name means one activity: the history remembers names, so two definitions under one name from different
places are an error that names both. Importing the same place again (a reload, a notebook cell, a module
run as ``__main__``) replaces the earlier definition.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType
from typing import Annotated, Any, Union, get_args

from pydantic import Field

from orchestrator.errors import DuplicateDefinition, InvalidArgument
from orchestrator.model.names import check_name
from orchestrator.model.options import ActivityOptions
from orchestrator.model.payloads import CallSignature


@dataclass(frozen=True, kw_only=True)
class ActivityDefinition:
    """One activity. ``legacy`` marks a plain Celery task, whose own rules hold."""

    name: str
    function: Callable[..., Any] | None
    """What runs; None when only the name is known."""
    signature: CallSignature = field(default_factory=CallSignature.untyped)
    """How arguments bind, and their type hints."""
    options: ActivityOptions = field(default_factory=ActivityOptions)
    legacy: bool = False

    @cached_property
    def result_hint(self) -> Any:
        """Type of the result as workflow code gets it.

        A plain task is used untouched, and annotations there were never checked: a result that does not
        fit its annotation reaches workflow code as plain JSON instead.
        """
        hint = self.signature.return_hint
        if not self.legacy or hint is Any:
            return hint
        either: Any = Union[hint, Any]  # noqa: UP007 - hint is a value
        if all(part in (None, NoneType, Any) for part in get_args(either)):
            # Nothing to be rebuilt; and pydantic has no order between null and anything.
            return Any
        return Annotated[either, Field(union_mode="left_to_right")]

    @property
    def is_async(self) -> bool:
        """True for an ``async def``."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def place(self) -> str:
        """Where it is defined, for messages."""
        code = getattr(self.function, "__code__", None)
        name = f"{getattr(self.function, '__module__', '?')}:{getattr(self.function, '__qualname__', '?')}"
        return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"

    def is_same_place(self, other: ActivityDefinition) -> bool:
        """Tells whether both were written at the same place, so that one replaces the other."""
        ours, theirs = self.function, other.function
        if getattr(ours, "__qualname__", None) != getattr(theirs, "__qualname__", None):
            return False
        if getattr(ours, "__module__", None) == getattr(theirs, "__module__", None):
            return True
        # A module run as __main__ and imported under its name is one file.
        codes = getattr(ours, "__code__", None), getattr(theirs, "__code__", None)
        return codes[0] is not None and codes[1] is not None and codes[0].co_filename == codes[1].co_filename


class ActivityRegistry:
    """All activities of this process by name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, ActivityDefinition] = {}

    def add(self, definition: ActivityDefinition) -> None:
        """Registers a definition, replacing one from the same place.

        Raises:
            DuplicateDefinition: Another place defines the name.
        """
        with self._lock:
            known = self._by_name.get(definition.name)
            if known is not None and not known.is_same_place(definition):
                raise DuplicateDefinition(
                    f"Two activities are named {definition.name!r}: {known.place} and {definition.place}. "
                    "A name is how history finds an activity again; give one of them another with "
                    "@activity.defn(name=...)."
                )
            self._by_name[definition.name] = definition

    def get(self, name: str) -> ActivityDefinition | None:
        """Returns the activity of that name, or None."""
        return self._by_name.get(name)

    def all(self) -> list[ActivityDefinition]:
        """Returns all activities, by name."""
        with self._lock:
            return [self._by_name[name] for name in sorted(self._by_name)]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forgets, at its end, what was registered inside; for tests that define activities of their own."""
        with self._lock:
            before = dict(self._by_name)
        try:
            yield
        finally:
            with self._lock:
                self._by_name = before


registry = ActivityRegistry()
"""The activities of this process."""


def define(function: object, *, name: str | None, options: ActivityOptions) -> ActivityDefinition:
    """Returns the definition of a function, after checking that it can be an activity.

    Raises:
        InvalidArgument: It is no function or a generator, it has no name, or a parameter has no annotation; the
            parameter is named.
    """
    if not inspect.isroutine(function):
        raise InvalidArgument("function", f"decorate a def or an async def, not {type(function).__name__}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidArgument(
            "function", f"{function.__qualname__} is a generator, but an activity returns its result; return a list"
        )
    if name is None and function.__name__ == "<lambda>":
        raise InvalidArgument("name", "a lambda has no name for history to find it by; write a def, or give name=")
    chosen = check_name(function.__name__ if name is None else name, "name")
    signature = CallSignature.of(function)
    if signature.unannotated:
        raise InvalidArgument(
            signature.unannotated[0],
            f"has no type annotation in activity {chosen!r}; arguments are stored as JSON and rebuilt by their "
            "annotations, so write one (typing.Any passes plain JSON)",
        )
    return ActivityDefinition(name=chosen, function=function, signature=signature, options=options)
