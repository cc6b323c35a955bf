"""What workflow authors import: decorators, and the calls that workflow code may make.

Workflow code is plain ``async`` Python, replayed from its history after every interruption. So it may use
``asyncio`` (``sleep``, ``timeout``, ``wait_for``, ``gather``, ``create_task``, ``TaskGroup``, ``Event``, …) and what
stands here, and leaves everything outside (network, files, clocks, threads) to activities.

Durations are a timedelta or a number of seconds, to the microsecond. Each ``TimeoutError`` is the built-in one.
"""

from __future__ import annotations

import inspect
import random as _random
import uuid
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from orchestrator.errors import InvalidArgument
from orchestrator.model.names import check_duration, check_flag, check_instant, check_name, check_type
from orchestrator.model.payloads import CallSignature
from orchestrator.runtime.calls import call_activity
from orchestrator.runtime.checks import check_handler, check_run, handler_name
from orchestrator.runtime.context import current, maybe_current
from orchestrator.runtime.definition import define
from orchestrator.runtime.info import WorkflowInfo, public_info
from orchestrator.runtime.logs import logger
from orchestrator.runtime.marks import Mark, MarkKind, set_mark
from orchestrator.runtime.registry import default_registry
from orchestrator.runtime.signals import UNSET
from orchestrator.types import Micros, RunCoroutine, to_datetime

__all__ = [
    "WorkflowInfo",
    "defn",
    "execute_activity",
    "in_workflow",
    "info",
    "logger",
    "now",
    "query",
    "random",
    "run",
    "side_effect",
    "signal",
    "sleep",
    "sleep_until",
    "uuid4",
    "wait_condition",
    "wait_for_signal",
]

_T = TypeVar("_T")
_Target = TypeVar("_Target", bound="Callable[..., Coroutine[Any, Any, Any]] | type[Any]")
_W = TypeVar("_W")
_P = ParamSpec("_P")
_SignalHandler = TypeVar("_SignalHandler", bound=Callable[..., "Coroutine[Any, Any, None] | None"])
_QueryHandler = TypeVar("_QueryHandler", bound=Callable[..., Any])


# --- decorators -----------------------------------------------------------------------------------


@overload
def defn(target: _Target, /) -> _Target: ...
@overload
def defn(
    *, name: str | None = None, queue: str | None = None, signals: Mapping[str, Any] | None = None
) -> Callable[[_Target], _Target]: ...
def defn(
    target: Any = None,
    /,
    *,
    name: str | None = None,
    queue: str | None = None,
    signals: Mapping[str, Any] | None = None,
) -> Any:
    """Makes an ``async def``, or a class with a ``@workflow.run`` method, a workflow type; returns it unchanged.

    Args:
        target: The function or class; left out when options are given.
        name: Name of the type in histories; default the function's or class's own.
        queue: Celery queue of its decisions; default as of any task.
        signals: Types of the signals that ``wait_for_signal`` takes, by name; None for one without a value. A type
            that declares signals, here or by handlers, refuses others.

    Raises:
        InvalidArgument: Something about it is refused; the argument, method or parameter is named.
        DuplicateDefinition: Another place defines a workflow of that name.
    """

    def register(decorated: Any) -> Any:
        default_registry().register(define(decorated, name=name, queue=queue, signals=signals))
        return decorated

    return register if target is None else register(target)


def run(
    method: Callable[Concatenate[_W, _P], Coroutine[Any, Any, _T]], /
) -> Callable[Concatenate[_W, _P], RunCoroutine[_T]]:
    """Marks the method of a workflow class that runs: an ``async def`` whose parameters are the inputs.

    It is returned unchanged. Its type tells a run method from a plain function, so that type checkers know that
    ``start(Approval.run, 500)`` leaves out ``self`` and ``start(fulfil, "42", 999)`` nothing.

    Raises:
        InvalidArgument: It is no plain ``async def``.
    """
    check_run(method, "run")
    set_mark(method, Mark(kind=MarkKind.RUN, name="run"))
    return method  # type: ignore[return-value]  # the same function, by the type that says what it is


@overload
def signal(method: _SignalHandler, /) -> _SignalHandler: ...
@overload
def signal(*, name: str | None = None, dynamic: bool = False) -> Callable[[_SignalHandler], _SignalHandler]: ...
def signal(method: Any = None, /, *, name: str | None = None, dynamic: bool = False) -> Any:
    """Marks a method as the handler of a signal, ``def`` or ``async def``; returns it unchanged.

    Handlers run in the order in which the signals came; those that came before the start run before ``run()``,
    after ``__init__``. An exception of a handler ends the run as one of ``run()`` does.

    Args:
        method: The method; left out when options are given.
        name: Name of the signal; default the method's own.
        dynamic: Takes every signal without a handler of its own, as ``(self, name: str, args: list[Any])``.

    Raises:
        InvalidArgument: It is no function, a name is refused, or both a name and ``dynamic`` are given.
    """
    if check_flag(dynamic, "dynamic") and name is not None:
        raise InvalidArgument("name", "a dynamic handler takes signals of any name; leave the name out")

    def mark(function: Any) -> Any:
        check_handler(function, function.__name__ if inspect.isfunction(function) else "signal", may_await=True)
        label = "" if dynamic else handler_name(function, name)
        set_mark(function, Mark(kind=MarkKind.SIGNAL, name=label, dynamic=dynamic))
        return function

    return mark if method is None else mark(method)


@overload
def query(method: _QueryHandler, /) -> _QueryHandler: ...
@overload
def query(*, name: str | None = None) -> Callable[[_QueryHandler], _QueryHandler]: ...
def query(method: Any = None, /, *, name: str | None = None) -> Any:
    """Marks a method as the handler of a query: a ``def`` that returns something and changes nothing.

    Args:
        method: The method; left out when options are given.
        name: Name of the query; default the method's own.

    Raises:
        InvalidArgument: It is no plain function, or the name is refused.
    """

    def mark(function: Any) -> Any:
        check_handler(function, function.__name__ if inspect.isfunction(function) else "query", may_await=False)
        label = handler_name(function, name)
        set_mark(function, Mark(kind=MarkKind.QUERY, name=label))
        return function

    return mark if method is None else mark(method)


# --- time -----------------------------------------------------------------------------------------


def now() -> datetime:
    """Returns the time of the event that workflow code is reacting to, in UTC.

    Raises:
        NotInWorkflow: No workflow code runs here.
    """
    return to_datetime(current("workflow.now()").now)


async def sleep(duration: timedelta | float) -> None:
    """Sleeps on a durable timer; zero and less are due at once, and still let the run be saved in between.

    Args:
        duration: A timedelta, or seconds.

    Raises:
        InvalidArgument: Of another type, NaN, or above 100 years.
        NotInWorkflow: No workflow code runs here.
    """
    await current("workflow.sleep()").timers.sleep(_wait(duration, "duration"))


async def sleep_until(instant: datetime) -> None:
    """Sleeps until an instant, on a durable timer; one that has passed is due at once.

    Args:
        instant: A datetime with a time zone.

    Raises:
        InvalidArgument: Not a datetime, or one without a time zone.
        NotInWorkflow: No workflow code runs here.
    """
    await current("workflow.sleep_until()").timers.sleep_until(check_instant(instant, "instant"))


# --- waiting --------------------------------------------------------------------------------------


async def wait_condition(predicate: Callable[[], Any], *, timeout: timedelta | float | None = None) -> None:
    """Waits until the predicate holds; returns at once when it does already.

    It is called after each event, when nothing else can run. It must only read the workflow's state.

    Args:
        predicate: A function without arguments; what it raises is raised here.
        timeout: Longest wait; None waits for ever, zero or less is due at once.

    Raises:
        TimeoutError: The time passed first.
        InvalidArgument: The time-out is of another type, NaN, or above 100 years.
        NotInWorkflow: No workflow code runs here.
    """
    execution = current("workflow.wait_condition()")
    if not callable(predicate):
        raise InvalidArgument("predicate", f"give a function without arguments, not {type(predicate).__name__}")
    await execution.conditions.wait(predicate, None if timeout is None else _wait(timeout, "timeout"))


@overload
async def wait_for_signal(name: str, *, timeout: timedelta | float | None = None) -> Any: ...
@overload
async def wait_for_signal(name: str, type: type[_T], *, timeout: timedelta | float | None = None) -> _T: ...
@overload
async def wait_for_signal(name: str, type: Any, *, timeout: timedelta | float | None = None) -> Any: ...
async def wait_for_signal(
    name: str,
    type: Any = UNSET,  # noqa: A002 - what it is
    *,
    timeout: timedelta | float | None = None,
) -> Any:
    """Waits for a signal and returns its value; one that came before is delivered at once.

    Each signal goes to one wait. Waits are served in the order they were opened, each with the oldest signal of
    its name.

    Args:
        name: Name of the signal.
        type: Type of its value; default the one in ``@workflow.defn(signals=…)``, else plain JSON.
        timeout: Longest wait; None waits for ever, zero or less is due at once.

    Returns:
        The value that was sent; None when none was.

    Raises:
        TimeoutError: The time passed first; a signal that comes later stays for the next wait.
        InvalidArgument: The name, the type or the time-out is refused.
        NotInWorkflow: No workflow code runs here.
    """
    execution = current("workflow.wait_for_signal()")
    checked = check_name(name, "name")
    hint = UNSET if type is UNSET else check_type(type, "type")
    timeout_us = None if timeout is None else _wait(timeout, "timeout")
    return await execution.signals.wait(checked, hint, timeout_us)


# --- what differs from run to run -----------------------------------------------------------------


def uuid4() -> uuid.UUID:
    """Returns a random UUID: another one with each call, the same in replay.

    Raises:
        NotInWorkflow: No workflow code runs here.
    """
    return uuid.UUID(int=current("workflow.uuid4()").generator("uuid4").getrandbits(128), version=4)


def random() -> _random.Random:
    """Returns the run's own random generator: other numbers in each run, the same in replay. Not for secrets.

    Raises:
        NotInWorkflow: No workflow code runs here.
    """
    return current("workflow.random()").generator("random")


def side_effect(function: Callable[[], _T], *, name: str = "", type: Any = None) -> _T:  # noqa: A002
    """Calls a function once and records its value; in replay the recorded value is returned instead.

    For something small and quick that differs each time, such as a setting. It may be called again when the
    process dies before the value is recorded, so what has an effect outside belongs in an activity.

    Args:
        function: A function without arguments. If it raises, the run is blocked and the call tried again later.
        name: For people; compared in replay.
        type: Type of the value; default the function's return annotation, else plain JSON.

    Returns:
        The value, as it was stored.

    Raises:
        PayloadError: The value can't be stored.
        InvalidArgument: It is no plain function, or the name or the type is refused.
        NotInWorkflow: No workflow code runs here.
    """
    execution = current("workflow.side_effect()")
    given: object = function
    if not callable(given) or inspect.iscoroutinefunction(given):
        raise InvalidArgument("function", "give a plain function without arguments; await an activity for more")
    unnamed: object = name
    label = "" if isinstance(unnamed, str) and not unnamed else check_name(name, "name")
    hint = CallSignature.of(function).return_hint if type is None else check_type(type, "type")
    value: _T = execution.side_effect(label, function, hint)
    return value


# --- the rest -------------------------------------------------------------------------------------


def info() -> WorkflowInfo:
    """Returns facts about the running workflow.

    Raises:
        NotInWorkflow: No workflow code runs here.
    """
    execution = current("workflow.info()")
    return public_info(execution.info, execution.converter)


def in_workflow() -> bool:
    """Tells whether workflow code is running here."""
    return maybe_current() is not None


async def execute_activity(target: Any, *args: Any, **options: Any) -> Any:
    """Runs an activity that is given as a name, a Celery signature or an activity, and waits for its result.

    Prefer ``await charge.execute(...)``, which is typed; this is for names that are data, and for Celery's
    ``legacy.s(1).set(queue="slow")``.

    Args:
        target: An activity, its name, or a signature of a Celery task.
        *args: Positional arguments; not with a signature, which has its own.
        **options: ``args=[…]`` and ``kwargs={…}`` in place of ``*args``, and the options of ``with_options``.

    Raises:
        ActivityError: It failed for good, timed out for good, or was cancelled.
        InvalidArgument: The target, an argument or an option is refused.
        NotInWorkflow: No workflow code runs here.
    """
    current("workflow.execute_activity()")
    return await call_activity(target, args, options)


def _wait(duration: object, argument: str) -> Micros:
    """A duration of workflow code: below zero counts as zero, since a deadline may have passed."""
    if isinstance(duration, timedelta):
        duration = max(duration, timedelta(0))
    elif isinstance(duration, (int, float)) and duration < 0:
        duration = 0 if duration > float("-inf") else duration
    return check_duration(duration, argument)
