"""The deadlines of an activity, folded into the one instant that the sweep's index holds.

=====================  =========================================  ==========================
time-out               runs from                                  when it passes
=====================  =========================================  ==========================
schedule-to-start      the attempt becoming due, to its claim     ends the activity
start-to-close         the attempt's claim, to its outcome        ends the attempt (retried)
heartbeat              the last heartbeat, on the sweep's clock   ends the attempt (retried)
schedule-to-close      the first attempt being scheduled          ends the activity
=====================  =========================================  ==========================
"""

from __future__ import annotations

from orchestrator.model.options import TIMEOUTS, ActivityOptions, RetryPolicy
from orchestrator.types import Attributes, Micros


def stored_options(options: ActivityOptions) -> Attributes:
    """Returns merged options in their stored form: microseconds and names."""
    retry = options.retry_policy or RetryPolicy()
    return {
        "retry": retry.to_json(),
        "priority": options.priority,
        "legacy": options.legacy,
        "celery": options.celery_options,
        **{name: options.timeout_us(name) for name in TIMEOUTS},
    }


def _earliest(*instants: Micros | None) -> Micros | None:
    return min((instant for instant in instants if instant is not None), default=None)


def final_deadline(options: Attributes, first_scheduled_at: Micros) -> Micros | None:
    """Returns when schedule-to-close passes, or None."""
    limit = options["schedule_to_close_timeout"]
    return None if limit is None else first_scheduled_at + int(limit)


def scheduled_deadline(options: Attributes, *, first_scheduled_at: Micros, due_at: Micros) -> Micros | None:
    """Returns the earliest deadline of an attempt that waits to be claimed from ``due_at`` on."""
    to_start = options["schedule_to_start_timeout"]
    start_by = None if to_start is None else due_at + int(to_start)
    return _earliest(start_by, final_deadline(options, first_scheduled_at))


def started_deadline(options: Attributes, *, first_scheduled_at: Micros, started_at: Micros) -> Micros | None:
    """Returns the earliest deadline of a claimed attempt."""
    to_close = options["start_to_close_timeout"]
    close_by = None if to_close is None else started_at + int(to_close)
    return _earliest(close_by, final_deadline(options, first_scheduled_at))
