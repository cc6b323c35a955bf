"""Waiting for a condition with a deadline: what tests do instead of sleeping and hoping."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class StillWaiting(AssertionError):
    """The deadline passed and the condition was still false."""


def wait_until(
    predicate: Callable[[], T],
    timeout: float = 10.0,
    *,
    interval: float = 0.02,
    message: str | Callable[[], str] = "",
    ignoring: tuple[type[Exception], ...] = (),
) -> T:
    """Call `predicate` until it answers something true, and return that.

    Args:
        predicate: asked at once, then every `interval` seconds, and once more after the deadline.
        timeout: seconds until the wait fails.
        interval: seconds between two questions.
        message: what was awaited, for the error; a callable is called only when the wait fails.
        ignoring: exceptions of `predicate` that count as "not yet".

    Raises:
        StillWaiting: with the message and the last answer or exception.
    """
    deadline = time.monotonic() + timeout
    while True:
        late = time.monotonic() >= deadline
        try:
            answer = predicate()
            last = f"last answer: {answer!r}"
        except ignoring as error:
            answer, last = None, f"last error: {error!r}"
        if answer:
            return answer
        if late:
            raise StillWaiting(_complaint(predicate, timeout, message, last))
        time.sleep(interval)


async def await_until(
    predicate: Callable[[], Awaitable[T]], timeout: float = 10.0, *, interval: float = 0.02, message: str = ""
) -> T:
    """The same as `wait_until` for an async predicate, on the running event loop."""
    deadline = time.monotonic() + timeout
    while True:
        late = time.monotonic() >= deadline
        answer = await predicate()
        if answer:
            return answer
        if late:
            raise StillWaiting(_complaint(predicate, timeout, message, f"last answer: {answer!r}"))
        await asyncio.sleep(interval)


def _complaint(predicate: object, timeout: float, message: str | Callable[[], str], last: str) -> str:
    text = message() if callable(message) else message
    what = text or getattr(predicate, "__qualname__", repr(predicate))
    return f"waited {timeout:g} s in vain for: {what}; {last}"
