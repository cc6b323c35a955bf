"""Retry arithmetic at its edges: it must be finite, monotone up to the cap, and repeatable."""

from datetime import timedelta

import pytest

from orchestrator.engine.retries import next_delay, resend_delay
from orchestrator.errors import InvalidArgument
from orchestrator.model.options import MAX_DELAY, RetryPolicy
from orchestrator.types import SECOND

ATTEMPTS = (1, 2, 46, 47, 63, 1023, 1024, 10**6)


def stored(**options: object) -> dict[str, object]:
    return RetryPolicy(**{"jitter": 0.0, **options}).to_json()  # type: ignore[arg-type]


@pytest.mark.parametrize("coefficient", [1, 1.0000001, 2, 10, 1e308])
@pytest.mark.parametrize("cap", [None, timedelta(seconds=1), timedelta(hours=1)])
def test_delays_are_finite_and_monotone_up_to_the_cap(coefficient: float, cap: timedelta | None) -> None:
    policy = stored(backoff_coefficient=coefficient, maximum_interval=cap)
    delays = [next_delay(policy, attempt, "run/1") for attempt in ATTEMPTS]
    assert delays == sorted(delays)
    assert all(0 <= delay <= MAX_DELAY for delay in delays)
    assert delays[0] == SECOND


def test_the_default_policy_waits_about_five_minutes_in_all() -> None:
    policy = stored()
    total = sum(next_delay(policy, attempt, "run/1") for attempt in range(1, 10))
    assert 290 * SECOND < total < 340 * SECOND


def test_jitter_is_the_same_for_the_same_attempt_and_differs_between_attempts() -> None:
    policy = stored(jitter=0.5, backoff_coefficient=1)
    first = [next_delay(policy, attempt, "run/1") for attempt in range(1, 20)]
    assert first == [next_delay(policy, attempt, "run/1") for attempt in range(1, 20)]
    assert len(set(first)) > 10
    assert all(SECOND / 2 <= delay <= SECOND for delay in first)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("backoff_coefficient", 0),
        ("backoff_coefficient", 0.5),
        ("backoff_coefficient", -1),
        ("backoff_coefficient", float("nan")),
        ("backoff_coefficient", float("inf")),
        ("backoff_coefficient", True),
        ("backoff_coefficient", "2"),
        ("jitter", 1.5),
        ("jitter", -0.1),
        ("maximum_attempts", 0),
        ("maximum_attempts", -1),
        ("maximum_attempts", 1.5),
        ("maximum_attempts", True),
        ("initial_interval", timedelta(seconds=-1)),
        ("initial_interval", timedelta.max),
        ("maximum_interval", timedelta.max),
        ("maximum_interval", timedelta(0)),
        ("non_retryable_error_types", "ValueError"),
        ("non_retryable_error_types", [3]),
    ],
)
def test_bad_settings_are_refused_when_the_policy_is_built(argument: str, value: object) -> None:
    with pytest.raises(InvalidArgument, match=argument):
        RetryPolicy(**{argument: value})  # type: ignore[arg-type]


def test_a_resend_doubles_its_wait_up_to_the_cap() -> None:
    waits = [resend_delay(count, 30 * SECOND, 600 * SECOND) for count in range(8)]
    assert waits == [30 * SECOND, 60 * SECOND, 120 * SECOND, 240 * SECOND, 480 * SECOND, *([600 * SECOND] * 3)]
    assert resend_delay(10**9, 30 * SECOND, 600 * SECOND) == 600 * SECOND
