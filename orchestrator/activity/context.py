"""What a running activity may ask: who it is, whether somebody wants it to stop, and how to say it lives.

The running attempt is a context variable, so it reaches async functions and what they call. Outside a
workflow (``charge.delay()``) there is an attempt too, without workflow fields; a plain call has none.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, is_dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar, overload

from orchestrator.errors import Cancelled, NotInActivity
from orchestrator.model.names import check_type
from orchestrator.model.payloads import PayloadConverter
from orchestrator.types import SECOND, Micros

_T = TypeVar("_T")
_T2 = TypeVar("_T2")

DEFAULT_INTERVAL = 1.0
"""Seconds between two heartbeats that are stored, where no heartbeat time-out is set."""

LONGEST_INTERVAL = 10.0
"""Seconds between two stored heartbeats at most: how late a cancellation may be noticed."""


@dataclass(frozen=True, kw_only=True)
class ActivityInfo:
    """Facts about the running attempt. Workflow fields are None when it runs outside a workflow.

    Attributes:
        activity: Name of the activity.
        task_id: Celery's task id of this attempt.
        idempotency_key: The same for every attempt of this activity in this run; hand it on to the outside.
        attempt: Counted from 1.
        workflow_id: The workflow's id.
        run_id: The run.
        workflow_type: The run's workflow type.
        namespace: The run's namespace.
        number: Number of the activity in its run.
        scheduled_at: When the activity was scheduled, in UTC.
        started_at: When this attempt was claimed, in UTC.
        start_to_close_deadline: When this attempt times out, in UTC; None without such a limit.
        schedule_to_close_deadline: When the whole activity times out, in UTC; None without such a limit.
        heartbeat_timeout: Longest silence between two heartbeats; None without such a limit.
    """

    activity: str
    task_id: str
    idempotency_key: str
    attempt: int = 1
    workflow_id: str | None = None
    run_id: str | None = None
    workflow_type: str | None = None
    namespace: str | None = None
    number: int | None = None
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    start_to_close_deadline: datetime | None = None
    schedule_to_close_deadline: datetime | None = None
    heartbeat_timeout: timedelta | None = None
    _details: bytes | None = field(default=None, repr=False)
    _converter: PayloadConverter = field(default_factory=PayloadConverter, repr=False)

    @overload
    def heartbeat_details(self, hint: type[_T], /) -> _T | None: ...

    @overload
    def heartbeat_details(self, first: type[_T], second: type[_T2], /) -> tuple[_T, _T2] | None: ...

    @overload
    def heartbeat_details(self, *hints: Any) -> Any: ...

    def heartbeat_details(self, *hints: Any) -> Any:
        """Returns what an earlier attempt last gave to ``activity.heartbeat``, rebuilt as the given types.

        Args:
            *hints: One type for each value that was given.

        Returns:
            The value, a tuple of them for several types, or None when there was no heartbeat with details.

        Raises:
            InvalidArgument: One of the types is none.
            PayloadError: The values do not fit the types.
        """
        for hint in hints:
            check_type(hint, "hints")
        if self._details is None:
            return None
        values = self._converter.decode_args(self._details, hints or (Any,), names=detail_names(len(hints)))
        return values[0] if len(hints) <= 1 else tuple(values)


def detail_names(count: int) -> list[str]:
    """Returns what errors call the details of a heartbeat."""
    return [f"details[{index}]" for index in range(count)]


def encoded_details(converter: PayloadConverter, details: Sequence[Any]) -> bytes:
    """Returns the details of a heartbeat as they are stored.

    Raises:
        PayloadError: One can't be stored; it is named.
    """
    # By each value's own type: dataclasses and models come back as whatever the reader names.
    hints = [type(value) if _is_structured(value) else Any for value in details]
    return converter.encode_args(details, hints, names=detail_names(len(details))).data


def _is_structured(value: object) -> bool:
    return is_dataclass(value) or hasattr(type(value), "model_fields")


class Reply(Protocol):
    """What a heartbeat is answered."""

    @property
    def cancel_requested(self) -> bool:
        """True when workflow code (or a person) cancelled the activity."""
        ...

    @property
    def current(self) -> bool:
        """False when another attempt has taken over."""
        ...


class RunningActivity:
    """The attempt that runs here: its facts and its heartbeats. Thread-safe.

    Args:
        info: The facts.
        report: Stores a heartbeat's details (None: no new ones) and returns the answer; None outside a workflow.
        interval: Seconds between two heartbeats that are stored.
        monotonic: Clock for the interval, in seconds.
    """

    def __init__(
        self,
        info: ActivityInfo,
        report: Callable[[bytes | None], Reply] | None = None,
        *,
        interval: float = DEFAULT_INTERVAL,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.info = info
        self.cancelled: str | None = None
        """Why it should stop, once that is known."""
        self.worker_stopping = False
        """True where a test says that the worker is shutting down."""
        self._report = report
        self._interval = interval
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._last: float | None = None
        self._unsent: bytes | None = None

    def heartbeat(self, details: tuple[Any, ...]) -> None:
        """Keeps the newest details, stores them when the interval has passed, and raises a known cancellation."""
        encoded = encoded_details(self.info._converter, details) if details else None  # noqa: SLF001 - its own record
        with self._lock:
            self._unsent = encoded if encoded is not None else self._unsent
            now = self._monotonic()
            due = self._last is None or now - self._last >= self._interval
            if due:
                self._last = now
        if due:
            self._send()
        self.raise_if_cancelled()

    def flush(self) -> None:
        """Stores details that were kept back, for the next attempt."""
        if self._unsent is not None:
            self._store()

    def raise_if_cancelled(self) -> None:
        """Raises Cancelled when the attempt was told to stop."""
        if self.cancelled is not None:
            raise Cancelled(self.cancelled)

    def _send(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._store()
        else:
            # Storing blocks, and every async activity of this process shares the loop.
            loop.run_in_executor(None, self._store)

    def _store(self) -> None:
        with self._lock:
            details, self._unsent = self._unsent, None
        if self._report is None:
            return
        reply = self._report(details)
        if not reply.current:
            self.cancelled = "Another attempt of this activity has taken over; this one's outcome no longer counts."
        elif reply.cancel_requested:
            self.cancelled = "The activity was cancelled."


_current: ContextVar[RunningActivity | None] = ContextVar("orchestrator_running_activity", default=None)


def running() -> RunningActivity:
    """Returns the attempt that runs here.

    Raises:
        NotInActivity: None does.
    """
    found = _current.get()
    if found is None:
        raise NotInActivity(
            "No activity runs here: the function was called directly. Call it from workflow code, send it with "
            ".delay(), or run it in a test with orchestrator.testing.ActivityEnvironment().run(function, ...)."
        )
    return found


def maybe_running() -> RunningActivity | None:
    """Returns the attempt that runs here, or None."""
    return _current.get()


@contextmanager
def entered(attempt: RunningActivity) -> Iterator[RunningActivity]:
    """Makes ``attempt`` the running one inside the block."""
    token = _current.set(attempt)
    try:
        yield attempt
    finally:
        _current.reset(token)


def heartbeat_interval(timeout_us: Micros | None) -> float:
    """Returns how many seconds lie between two heartbeats that are stored: a third of the time-out at most."""
    if timeout_us is None:
        return DEFAULT_INTERVAL
    return min(LONGEST_INTERVAL, timeout_us / SECOND / 3)


_stopping = threading.Event()


def note_worker_shutdown(*, stopping: bool) -> None:
    """Tells running activities whether their worker is shutting down; called by the worker.

    A process may run several workers, one after another: in tests, say.
    """
    if stopping:
        _stopping.set()
    else:
        _stopping.clear()


def is_worker_shutting_down() -> bool:
    """Tells whether the worker wants to end: finish soon, or heartbeat what is done and stop."""
    attempt = maybe_running()
    return _stopping.is_set() or (attempt is not None and attempt.worker_stopping)
