"""Tiny building blocks that everything above may use: clocks, ids, type aliases."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeAlias, TypeVar

import uuid_utils

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
"""A plain JSON value."""

Micros: TypeAlias = int
"""An instant (microseconds since the Unix epoch, UTC) or a duration (microseconds)."""

SECOND: Micros = 1_000_000
"""One second in microseconds."""


class Clock(Protocol):
    """Source of the present instant, injected wherever one is needed."""

    def now(self) -> Micros:
        """Returns the present instant in microseconds since the Unix epoch, UTC."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> Micros:
        """Returns the present instant in microseconds since the Unix epoch, UTC."""
        return time.time_ns() // 1000


class ManualClock:
    """A clock that stands still until it is moved; for tests and simulation.

    Args:
        start: First instant in microseconds since the Unix epoch.
    """

    def __init__(self, start: Micros = 1_700_000_000 * SECOND) -> None:
        self._now = start

    def now(self) -> Micros:
        """Returns the instant it was last moved to."""
        return self._now

    def advance_to(self, instant: Micros) -> None:
        """Moves the clock forward to ``instant``; an earlier instant leaves it where it is."""
        self._now = max(self._now, instant)


IdFactory = Callable[[], str]
"""Makes a fresh unique id."""


def new_id() -> str:
    """Returns a fresh UUIDv7 (RFC 9562) as text: unique, and sortable by creation time."""
    return str(uuid_utils.uuid7())


def to_micros(duration: timedelta) -> Micros:
    """Returns a duration in whole microseconds."""
    return duration // timedelta(microseconds=1)


def to_datetime(instant: Micros) -> datetime:
    """Returns an instant as an aware datetime in UTC, to the microsecond."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=instant)


Attributes = dict[str, Any]
"""Plain JSON attributes of a stored row."""


R_co = TypeVar("R_co", covariant=True)


class RunCoroutine(Coroutine[Any, Any, R_co]):
    """What type checkers see a ``@workflow.run`` method return; nothing is ever an instance of it.

    It tells a run method from a plain function. Without it ``start(fulfil, 999)`` would pass type checkers when
    ``fulfil`` takes ``(str, int)``: as a method of ``str`` with one argument.
    """
