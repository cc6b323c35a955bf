"""What a decorator refuses where it is written, so that no run ever starts with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from orchestrator.errors import InvalidArgument
from orchestrator.model.names import check_name

_REFUSED = {
    Parameter.KEYWORD_ONLY: "is keyword-only; make it positional, as all inputs of workflows, signals and queries are",
    Parameter.VAR_POSITIONAL: "takes any number of arguments; name each input, or take one list",
    Parameter.VAR_KEYWORD: "takes any keyword arguments; name each input, or take one dict",
}


def check_run(function: object, argument: str) -> Callable[..., Any]:
    """Returns the function that a workflow runs.

    Raises:
        InvalidArgument: It is no plain ``async def``.
    """
    checked = _check_function(function, argument, "an async def")
    if checked.__name__ == "<lambda>":
        raise InvalidArgument(argument, "a lambda has no name for history to find it by; write an async def")
    if inspect.isasyncgenfunction(checked):
        raise InvalidArgument(
            argument, f"{checked.__qualname__} is an async generator; write an async def that returns"
        )
    if not inspect.iscoroutinefunction(checked):
        what = "a generator" if inspect.isgeneratorfunction(checked) else "a plain function"
        raise InvalidArgument(argument, f"{checked.__qualname__} is {what}; write an async def")
    return checked


def check_handler(function: object, argument: str, *, may_await: bool) -> Callable[..., Any]:
    """Returns a signal or query handler.

    Raises:
        InvalidArgument: It is no function, is a generator, or is async where that is not possible.
    """
    checked = _check_function(function, argument, "a method")
    if inspect.isgeneratorfunction(checked) or inspect.isasyncgenfunction(checked):
        raise InvalidArgument(
            argument, f"{checked.__qualname__} is a generator; write a def" + " or async def" * may_await
        )
    if inspect.iscoroutinefunction(checked) and not may_await:
        raise InvalidArgument(argument, f"{checked.__qualname__} is async, but a query answers at once; write a def")
    return checked


def handler_name(function: Callable[..., Any], name: str | None) -> str:
    """Returns the name of a signal or query: the one given, else its handler's own.

    Raises:
        InvalidArgument: It can't be a name.
    """
    if name is None and function.__name__ == "<lambda>":
        raise InvalidArgument("name", "a lambda has no name of its own; write a def, or give name=")
    return check_name(function.__name__ if name is None else name, "name")


def check_inputs(function: Callable[..., Any], *, is_method: bool) -> None:
    """Checks that every input of a function is positional and annotated.

    Raises:
        InvalidArgument: One is not; it is named.
    """
    parameters = list(inspect.signature(function).parameters.values())
    place = getattr(function, "__qualname__", repr(function))
    if is_method:
        first = parameters[0] if parameters else None
        if first is None or first.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            raise InvalidArgument("self", f"{place} takes no self; it is a method of the workflow class")
        parameters = parameters[1:]
    for parameter in parameters:
        if parameter.kind in _REFUSED:
            raise InvalidArgument(parameter.name, f"of {place} {_REFUSED[parameter.kind]}")
        if parameter.annotation is Parameter.empty:
            raise InvalidArgument(
                parameter.name,
                f"of {place} has no type annotation; inputs are stored as JSON and rebuilt by their annotations, so "
                "write one (typing.Any passes plain JSON)",
            )


def check_constructor(cls: type) -> None:
    """Checks that a workflow class can be made without arguments.

    Raises:
        InvalidArgument: Its ``__init__`` needs some.
    """
    try:
        parameters = list(inspect.signature(cls).parameters.values())
    except (TypeError, ValueError):
        return
    for parameter in parameters:
        variable = parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        if parameter.default is Parameter.empty and not variable:
            raise InvalidArgument(
                parameter.name, f"__init__ of {cls.__qualname__} takes no arguments; the inputs go to run()"
            )


def _check_function(function: object, argument: str, what: str) -> Callable[..., Any]:
    if isinstance(function, (staticmethod, classmethod)):
        raise InvalidArgument(argument, f"decorate {what} with self, not a {type(function).__name__}")
    if not inspect.isfunction(function):
        raise InvalidArgument(argument, f"decorate {what}, not {type(function).__name__}")
    return function
