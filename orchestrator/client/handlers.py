"""Finding the signal or query that a caller means, and what it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.errors import InvalidArgument
from orchestrator.model.names import check_name

if TYPE_CHECKING:
    from orchestrator.model.payloads import CallSignature
    from orchestrator.runtime.definition import QueryDefinition, SignalDefinition, WorkflowDefinition


def check_message(message: object, argument: str) -> str | None:
    """Returns the name that was given; None for what may be a method.

    Raises:
        InvalidArgument: It is neither a function nor a name.
    """
    if isinstance(message, str):
        return check_name(message, argument)
    if not inspect.isfunction(message):
        raise InvalidArgument(
            argument, f"give a name or a @workflow.{argument} method of the class, not {type(message).__name__}"
        )
    return None


def signal_of(signal: object, definition: Callable[[], WorkflowDefinition | None]) -> tuple[str, CallSignature | None]:
    """Returns a signal's name, and what it takes if this process knows.

    Args:
        signal: A ``@workflow.signal`` method, or a name.
        definition: Gives the workflow's code, None when this process has none; asked after the name is checked.

    Raises:
        InvalidArgument: It is neither, or a method of another class.
    """
    name = check_message(signal, "signal")
    known = definition()
    if name is None:
        name = _name_of_method(signal, "signal", known, {} if known is None else known.signals)
    found = None if known is None else known.signals.get(name)
    return name, None if found is None else found.signature


def query_of(query: object, definition: WorkflowDefinition) -> tuple[str, CallSignature | None, Any]:
    """Returns a query's name, what it takes, and the type hint of its answer.

    Raises:
        InvalidArgument: It is neither a ``@workflow.query`` method of the class nor a name.
    """
    name = check_message(query, "query")
    if name is None:
        name = _name_of_method(query, "query", definition, definition.queries)
    found = definition.queries.get(name)
    if found is None:
        return name, None, Any
    return name, found.signature, found.result_hint


def _name_of_method(
    method: Any,
    argument: str,
    definition: WorkflowDefinition | None,
    handlers: Mapping[str, SignalDefinition] | Mapping[str, QueryDefinition],
) -> str:
    if definition is None:
        raise InvalidArgument(
            argument, f"the code of this workflow is not known here, so {method.__qualname__} can't be its {argument}"
        )
    for name, handler in handlers.items():
        if handler.handler is not None and _is_of(method, definition.cls, handler.handler):
            return name
    known = ", ".join(map(repr, handlers)) or "none"
    raise InvalidArgument(
        argument,
        f"{method.__qualname__} is no {argument} of workflow type {definition.name!r}; give one that is: {known}",
    )


def _is_of(method: Callable[..., Any], cls: type | None, attribute: str) -> bool:
    # A base class's method stands for the one that overrides it.
    return cls is not None and any(vars(base).get(attribute) is method for base in cls.__mro__)
