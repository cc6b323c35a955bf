"""Async twins of blocking calls, made and never written twice.

Every blocking method of the client has an ``a``-prefixed twin::

    def signal(self, …) -> SignalReceipt: …
    asignal = twin(signal)

``twin`` keeps the signature, overloads and type variables included, so type checkers see the twin as if it
were written out. The twin runs the method in a thread, because the database driver blocks.

A method that waits is written once as a generator of pauses and decorated with :func:`waiting`::

    @waiting
    def result(self, …) -> Pauses[R]: …      # yields seconds to wait, returns the answer
    aresult = twin(result)

Its blocking form sleeps between the steps; its twin awaits ``asyncio.sleep`` between steps that run in a
thread. So ten thousand waiting coroutines hold no thread, and nobody holds a connection while waiting.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeAlias, TypeVar

from orchestrator.runtime.context import refuse_inside_workflow

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class Pause(float):
    """Seconds until the next look.

    Attributes:
        left: Seconds that the whole wait may still take; None without a limit.
    """

    left: float | None

    def __new__(cls, seconds: float, left: float | None = None) -> Self:
        pause = super().__new__(cls, seconds if left is None else min(seconds, left))
        pause.left = left
        return pause


Pauses: TypeAlias = Generator[float, None, R]
"""A call that waits: yields how many seconds to wait before its next step, and returns its answer."""


class CanSleep(Protocol):
    """Who offers :func:`waiting` methods says how to wait."""

    @property
    def _sleep(self) -> Callable[[float], None]:
        """Waits a number of seconds; ``time.sleep`` outside of tests."""
        ...


C = TypeVar("C", bound=CanSleep)


def waiting(steps: Callable[Concatenate[C, P], Pauses[R]]) -> Callable[Concatenate[C, P], R]:
    """Makes a blocking method of a generator of pauses."""

    @functools.wraps(steps)
    def call(self: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
        generator = steps(self, *args, **kwargs)
        while True:
            try:
                pause = next(generator)
            except StopIteration as end:
                answer: R = end.value
                return answer
            self._sleep(pause)

    call.__dict__["steps"] = steps
    return call


def twin(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Makes the async form of a blocking method, with the same signature."""
    name = method.__name__
    steps = method.__dict__.get("steps")

    @functools.wraps(method, updated=())
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        refuse_inside_workflow(f"{type(self).__name__}.a{name}()")
        if steps is None:
            return await asyncio.to_thread(getattr(self, name), *args, **kwargs)
        answer: R = await _drive(self, steps(self, *args, **kwargs))
        return answer

    call.__name__ = f"a{name}"
    call.__qualname__ = ".".join([*method.__qualname__.split(".")[:-1], call.__name__])
    call.__doc__ = f"Async twin of :meth:`{name}`."
    return call


async def _drive(owner: Any, generator: Pauses[R]) -> R:
    sleep = owner._sleep  # noqa: SLF001 - the protocol above, which only this module speaks
    while True:
        pause, answer = await asyncio.to_thread(_step, generator)
        if pause is None:
            return answer  # type: ignore[return-value]  # None only beside a pause
        if sleep is time.sleep:
            await asyncio.sleep(pause)
        else:
            await asyncio.to_thread(sleep, pause)


def _step(generator: Pauses[R]) -> tuple[float | None, R | None]:
    """Advances to the next pause; StopIteration itself can't leave a future."""
    try:
        return next(generator), None
    except StopIteration as end:
        return None, end.value
