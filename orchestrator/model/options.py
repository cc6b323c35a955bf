"""Options that authors write, checked where they are written and stored as plain JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from orchestrator.errors import InvalidArgument
from orchestrator.model.failures import error_type_name
from orchestrator.model.names import check_duration, check_int, check_name, number_text
from orchestrator.types import SECOND, Attributes, Micros

MAX_DELAY: Micros = 100 * 365 * 86400 * SECOND
"""Longest delay that is accepted: one hundred years."""

MOST_ATTEMPTS = 2**31 - 1
"""Most attempts that can be asked for; None is no limit."""


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """When and how often a failed activity is tried again.

    The delay before attempt ``n + 1`` is ``initial_interval × backoff_coefficient^(n−1)``, at most
    ``maximum_interval``, then made shorter by up to ``jitter`` of itself (deterministic per attempt).

    Args:
        initial_interval: Delay before the second attempt. Default 1 s.
        backoff_coefficient: Growth per attempt, at least 1. Default 2.
        maximum_interval: Cap of the delay. Default 100 s; None is no cap (100 years).
        maximum_attempts: Attempts in all, at least 1; 1 means no retry. None is unlimited. Default 10.
        non_retryable_error_types: Exception classes, or their bare or qualified names, that end the retries.
        jitter: Share of the delay that may be taken off, from 0 to 1. Default 0.1.

    Raises:
        InvalidArgument: A value is of the wrong type or out of range; the argument is named.
    """

    initial_interval: timedelta = timedelta(seconds=1)
    backoff_coefficient: float = 2.0
    maximum_interval: timedelta | None = timedelta(seconds=100)
    maximum_attempts: int | None = 10
    non_retryable_error_types: Sequence[type[BaseException] | str] = ()
    jitter: float = 0.1

    def __post_init__(self) -> None:
        first = check_duration(self.initial_interval, "initial_interval")
        if self.maximum_interval is not None:
            cap = check_duration(self.maximum_interval, "maximum_interval")
            if cap < first:
                raise InvalidArgument(
                    "maximum_interval", "is shorter than initial_interval; raise it or lower the other"
                )
        _check_float(self.backoff_coefficient, "backoff_coefficient", minimum=1.0, maximum=None)
        _check_float(self.jitter, "jitter", minimum=0.0, maximum=1.0)
        if self.maximum_attempts is not None:
            check_int(self.maximum_attempts, "maximum_attempts", minimum=1, maximum=MOST_ATTEMPTS)
        if isinstance(self.non_retryable_error_types, (str, bytes)) or not isinstance(
            self.non_retryable_error_types, Sequence
        ):
            raise InvalidArgument("non_retryable_error_types", "give a list of exception classes or names")
        names = tuple(error_type_name(item, "non_retryable_error_types") for item in self.non_retryable_error_types)
        object.__setattr__(self, "non_retryable_error_types", names)

    def to_json(self) -> Attributes:
        """Returns the stored form: microseconds and names."""
        cap = self.maximum_interval
        return {
            "initial_us": check_duration(self.initial_interval, "initial_interval"),
            "coefficient": float(self.backoff_coefficient),
            "cap_us": MAX_DELAY if cap is None else check_duration(cap, "maximum_interval"),
            "attempts": self.maximum_attempts,
            "non_retryable": list(self.non_retryable_error_types),
            "jitter": float(self.jitter),
        }


def _check_float(value: object, argument: str, *, minimum: float, maximum: float | None) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidArgument(argument, f"give a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    # The comparison is written so that NaN fails it too.
    if not (minimum <= number < float("inf")) or (maximum is not None and number > maximum):
        upper = "" if maximum is None else f" and at most {maximum}"
        raise InvalidArgument(argument, f"give a finite number of at least {minimum}{upper}, not {number_text(value)}")


NO_RETRY = RetryPolicy(maximum_attempts=1)
"""One attempt only: what a plain Celery task gets, which has retry rules of its own."""


@dataclass(frozen=True, kw_only=True)
class ActivityOptions:
    """Options of one activity call; None means "not said here" until merged with the defaults.

    Durations are timedelta or seconds. ``legacy`` marks a plain Celery task: its own retry rules and
    time limits hold, so it gets one attempt of ours and no start-to-close by default.
    """

    queue: str | None = None
    retry_policy: RetryPolicy | None = None
    start_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    schedule_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    priority: int | None = None
    legacy: bool = False
    celery_options: Attributes = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.queue is not None:
            check_name(self.queue, "queue")
        if self.retry_policy is not None and not isinstance(self.retry_policy, RetryPolicy):
            raise InvalidArgument("retry_policy", f"give a RetryPolicy, not {type(self.retry_policy).__name__}")
        for name in TIMEOUTS:
            value = getattr(self, name)
            if value is not None:
                micros = check_duration(value, name, allow_zero=False)
                object.__setattr__(self, name, timedelta(microseconds=micros))
        if self.priority is not None:
            check_int(self.priority, "priority", minimum=0, maximum=9)

    def merged(self, over: ActivityOptions) -> ActivityOptions:
        """Returns these options, with those of ``over`` taken where these say nothing."""
        changes: dict[str, Any] = {
            name: getattr(over, name)
            for name in (*TIMEOUTS, "queue", "retry_policy", "priority")
            if getattr(self, name) is None
        }
        return replace(self, **changes, celery_options={**over.celery_options, **self.celery_options})

    def timeout_us(self, name: str) -> Micros | None:
        """Returns one of the time-outs in microseconds, or None."""
        value: timedelta | None = getattr(self, name)
        return None if value is None else check_duration(value, name)


TIMEOUTS = (
    "start_to_close_timeout",
    "schedule_to_start_timeout",
    "schedule_to_close_timeout",
    "heartbeat_timeout",
)

DEFAULT_ACTIVITY_OPTIONS = ActivityOptions(retry_policy=RetryPolicy(), start_to_close_timeout=timedelta(seconds=300))
"""The product's defaults: 10 attempts from 1 s doubling to 100 s, start-to-close 300 s."""

LEGACY_ACTIVITY_OPTIONS = ActivityOptions(retry_policy=NO_RETRY)
"""Defaults of a plain Celery task: one attempt of ours, no start-to-close."""


class IdReusePolicy(StrEnum):
    """What a start does when the last run of its workflow id has closed."""

    USE_EXISTING = "use_existing"
    """Return the handle of the closed run (the default: starting is idempotent)."""
    ALLOW_DUPLICATE = "allow_duplicate"
    """Start another run."""
    ALLOW_DUPLICATE_FAILED_ONLY = "allow_duplicate_failed_only"
    """Start another run unless the last one completed."""
    REJECT_DUPLICATE = "reject_duplicate"
    """Raise WorkflowAlreadyStarted."""
    TERMINATE_EXISTING = "terminate_existing"
    """Terminate an open run first, then start; start also over a closed one."""


__all__ = [
    "DEFAULT_ACTIVITY_OPTIONS",
    "LEGACY_ACTIVITY_OPTIONS",
    "MAX_DELAY",
    "NO_RETRY",
    "TIMEOUTS",
    "ActivityOptions",
    "IdReusePolicy",
    "RetryPolicy",
]
