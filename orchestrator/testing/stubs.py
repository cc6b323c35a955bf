"""Stubs: what stands in for an activity in a test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from orchestrator.errors import EnvironmentStuck, InvalidArgument
from orchestrator.model.names import check_duration
from orchestrator.model.payloads import PayloadConverter
from orchestrator.types import Micros


class Unset:
    """The type of an argument that was not given, where None is a value."""

    def __repr__(self) -> str:
        return "<not given>"


UNSET: Final = Unset()


class TestFailure(BaseException):
    """Carries what a test must see through code that would store it as an activity's failure.

    Args:
        error: The error that the test must see.
    """

    __test__ = False  # no class for pytest to collect

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Stub:
    """What happens in place of an activity.

    Args:
        name: Name of the activity.
        act: Called with the activity's arguments; returns its result, or a coroutine of it, or raises.
        takes_us: How long an attempt lasts on the environment's clock, in microseconds.
    """

    def __init__(self, name: str, act: Callable[..., Any], takes_us: Micros) -> None:
        self.name = name
        self.act = act
        self.takes_us = takes_us

    def __repr__(self) -> str:
        return f"<stub of activity {self.name!r}>"


def make_stub(
    name: str,
    *,
    returns: Any,
    raises: Any,
    side_effect: Any,
    takes: timedelta | float,
    result_hint: Any,
    converter: PayloadConverter,
) -> Stub:
    """Returns a stub of what a test asked for.

    Raises:
        InvalidArgument: None or several of ``returns``, ``raises`` and ``side_effect`` are given, or one is of the
            wrong kind; the argument is named.
    """
    given = [
        word
        for word, value in (("returns", returns), ("raises", raises), ("side_effect", side_effect))
        if not isinstance(value, Unset)
    ]
    if len(given) != 1:
        found = f"not {' and '.join(given)}" if given else "and nothing is"
        raise InvalidArgument("stub", f"say what happens by one of returns=, raises= and side_effect=, {found}")
    takes_us = check_duration(takes, "takes")
    if given == ["returns"]:
        # Refused here, where the test says it, and not as a failure of the workflow that is tested.
        converter.encode(returns, result_hint, argument="returns")
        return Stub(name, lambda *_args, **_kwargs: returns, takes_us)
    if given == ["raises"]:
        return Stub(name, _raising(_check_error(raises)), takes_us)
    return Stub(name, _side_effect(name, side_effect), takes_us)


def _check_error(error: object) -> BaseException | type[BaseException]:
    if isinstance(error, Exception) or (isinstance(error, type) and issubclass(error, Exception)):
        return error
    raise InvalidArgument("raises", f"give an exception or an exception class, not {type(error).__name__}")


def _raising(error: BaseException | type[BaseException]) -> Callable[..., Any]:
    def act(*_args: Any, **_kwargs: Any) -> Any:
        # Without the traceback of the last time, which would grow with every attempt.
        raise error.with_traceback(None) if isinstance(error, BaseException) else error

    return act


def _side_effect(name: str, effect: object) -> Callable[..., Any]:
    if callable(effect):
        return _calling(effect)
    if isinstance(effect, Iterable) and not isinstance(effect, str | bytes | dict):
        return _one_by_one(name, iter(effect))
    raise InvalidArgument(
        "side_effect",
        "give a function with the activity's arguments, or a list of results and exceptions, one for each attempt; "
        f"not {type(effect).__name__}",
    )


def _calling(function: Callable[..., Any]) -> Callable[..., Any]:
    def act(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except AssertionError as error:
            # The test's own assertion: retrying it ten times would only hide it.
            raise TestFailure(error) from None
        return _awaiting(result) if inspect.iscoroutine(result) else result

    return act


async def _awaiting(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await coroutine
    except AssertionError as error:
        raise TestFailure(error) from None


def _one_by_one(name: str, outcomes: Iterator[Any]) -> Callable[..., Any]:
    def act(*_args: Any, **_kwargs: Any) -> Any:
        try:
            outcome = next(outcomes)
        except StopIteration:
            raise TestFailure(
                EnvironmentStuck(
                    f"Activity {name!r} was called once more than its stub has outcomes; add one to the list that "
                    "side_effect= is, or give a function."
                )
            ) from None
        if isinstance(outcome, Exception) or (isinstance(outcome, type) and issubclass(outcome, Exception)):
            raise outcome
        return outcome

    return act
