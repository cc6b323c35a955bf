"""The border: what ids, names, durations and instants are accepted, and how a refusal reads."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import IntEnum, StrEnum
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import InvalidArgument, OrchestratorError
from orchestrator.model.names import (
    LONGEST,
    check_choice,
    check_duration,
    check_id,
    check_instant,
    check_int,
    check_name,
    check_text,
    task_id_for,
)

SECOND = 1_000_000


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize("check", [check_id, check_name])
@pytest.mark.parametrize(
    "value",
    [
        "order-42",
        "a/b/c",
        'it\'s "quoted" \\ here',
        "two  inner   spaces",
        "no\u00a0break inside",
        "emoji 🧾👩‍👩‍👧",
        "עברית \u202eabc",
        "e\u0301 combining",
        "𠜎𠜱",
        "\uffff",
        "%2F?#&=<script>",
        "x" * 255,
        "é" * 127,
    ],
)
def test_ordinary_and_odd_ids_are_kept_byte_exact(check, value):
    assert check(value, "id") == value


@pytest.mark.parametrize("check", [check_id, check_name])
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "empty"),
        (" ", "blank"),
        (" a", "blank"),
        ("a ", "blank"),
        ("\u3000a", "blank"),
        ("a\u2028", "blank"),
        ("a\x00b", r"control character \(U\+0000\) at position 1"),
        ("a\nb", "control character"),
        ("a\tb", "control character"),
        ("a\x7f", "control character"),
        ("a\x85b", "control character"),
        ("a\ud800", r"lone surrogate \(U\+D800\) at position 1"),
        ("\udfffx", "lone surrogate"),
        ("x" * 256, "256 bytes"),
        ("é" * 128, "256 bytes"),
        ("🧾" * 64, "256 bytes"),
        (None, "not NoneType"),
        (b"order", "not bytes"),
        (42, "not int"),
        (True, "not bool"),
        (["a"], "not list"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_the_name_of_the_argument(check, value, reason):
    with pytest.raises(InvalidArgument, match=reason) as refused:
        check(value, "workflow_id")
    assert refused.value.argument == "workflow_id"
    assert str(refused.value).startswith("workflow_id: ")
    str(refused.value).encode()


def test_refusals_are_value_errors_and_errors_of_this_library():
    with pytest.raises(ValueError, match="id"):
        check_id("", "id")
    assert issubclass(InvalidArgument, OrchestratorError)


def test_an_enum_member_stands_for_its_text():
    assert check_name(Colour.RED, "name") == "red"
    assert type(check_name(Colour.RED, "name")) is str


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=63))
def test_any_text_without_control_characters_and_blank_edges_is_an_id(text):
    if text == text.strip():
        assert check_id(text, "id") == text
    else:
        with pytest.raises(InvalidArgument):
            check_id(text, "id")


def test_a_reason_may_be_empty_and_have_lines_but_no_nul():
    assert check_text("", "reason", 10) == ""
    assert check_text("a\n\tb\r\n", "reason", 10) == "a\n\tb\r\n"
    assert check_text("  edges ", "reason", 10) == "  edges "
    for bad, why in [("a\x00", "U\\+0000"), ("\ud800", "surrogate"), ("é" * 6, "12 bytes"), (3, "not int")]:
        with pytest.raises(InvalidArgument, match=why):
            check_text(bad, "reason", 10)


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        (timedelta(seconds=1), SECOND),
        (timedelta(0), 0),
        (timedelta(microseconds=1), 1),
        (timedelta(days=3), 3 * 86400 * SECOND),
        (5, 5 * SECOND),
        (0, 0),
        (0.25, 250_000),
        (0.1, 100_000),
        (1e-9, 1),
        (-0.0, 0),
        (timedelta(days=36500), LONGEST),
    ],
)
def test_durations_are_timedeltas_or_seconds(value, micros):
    assert check_duration(value, "timeout") == micros
    assert type(check_duration(value, "timeout")) is int


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (True, "not bool"),
        (None, "not NoneType"),
        ("5", "not str"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (float("-inf"), "finite"),
        (-1, "negative"),
        (-0.5, "negative"),
        (-1e-9, "negative"),
        (-1e300, "negative"),
        (timedelta(microseconds=-1), "negative"),
        (timedelta.min, "negative"),
        (timedelta.max, "100 years"),
        (1e300, "100 years"),
        (sys.float_info.max, "100 years"),
        (10**30, "100 years"),
        pytest.param(10**5000, r"100 years.*bits", id="huge"),
        pytest.param(-(10**5000), "negative", id="hugely negative"),
        (timedelta(days=36500, microseconds=1), "100 years"),
    ],
)
def test_durations_that_make_no_sense_are_refused(value, reason):
    with pytest.raises(InvalidArgument, match=reason) as refused:
        check_duration(value, "start_to_close_timeout")
    assert refused.value.argument == "start_to_close_timeout"


def test_zero_and_long_durations_are_refused_where_asked():
    for zero in (0, 0.0, timedelta(0)):
        with pytest.raises(InvalidArgument, match="above zero"):
            check_duration(zero, "timeout", allow_zero=False)
    assert check_duration(1e-12, "timeout", allow_zero=False) == 1
    with pytest.raises(InvalidArgument, match="at most 1:00:00"):
        check_duration(3601, "timeout", maximum=timedelta(hours=1))
    assert check_duration(3600, "timeout", maximum=timedelta(hours=1)) == 3600 * SECOND


@given(st.timedeltas(timedelta(0), timedelta(days=36500)))
def test_a_timedelta_is_converted_exactly(duration):
    assert timedelta(microseconds=check_duration(duration, "timeout")) == duration


def test_instants_need_a_time_zone():
    assert check_instant(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "at") == SECOND
    assert check_instant(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "at") == 0
    assert check_instant(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "at") == -1
    with pytest.raises(InvalidArgument, match=re.escape("datetime.now(timezone.utc)")):
        check_instant(datetime(2024, 1, 1), "at")
    for value in (None, "2024-01-01", 5, datetime(2024, 1, 1, tzinfo=UTC).date()):
        with pytest.raises(InvalidArgument, match="datetime with a time zone"):
            check_instant(value, "at")


def test_the_two_readings_of_a_repeated_hour_are_an_hour_apart():
    berlin = ZoneInfo("Europe/Berlin")
    first = datetime(2024, 10, 27, 2, 30, tzinfo=berlin)
    assert check_instant(first.replace(fold=1), "at") - check_instant(first, "at") == 3600 * SECOND


def test_the_ends_of_the_calendar_are_instants_and_beyond_them_nothing_can_be_shown():
    assert check_instant(datetime.max.replace(tzinfo=UTC), "at") > 0
    assert check_instant(datetime.min.replace(tzinfo=UTC), "at") < 0
    for beyond in (
        datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
    ):
        with pytest.raises(InvalidArgument, match="years 1 to 9999"):
            check_instant(beyond, "at")


def test_a_broken_time_zone_is_a_refusal():
    class Broken(tzinfo):
        def utcoffset(self, when):
            raise RuntimeError("no")

    with pytest.raises(InvalidArgument, match="RuntimeError"):
        check_instant(datetime(2024, 1, 1, tzinfo=Broken()), "at")


def test_choices_are_matched_exactly_and_near_misses_get_a_hint():
    assert check_choice("red", "colour", Colour) is Colour.RED
    assert check_choice(Colour.BLUE, "colour", Colour) is Colour.BLUE
    assert check_choice("b", "letter", ("a", "b")) == "b"
    with pytest.raises(InvalidArgument, match=r"one of 'red', 'blue'.*did you mean 'red'"):
        check_choice("redd", "colour", Colour)
    for value in (None, 1, b"red", ["red"], "RED", "\ud800"):
        with pytest.raises(InvalidArgument) as refused:
            check_choice(value, "colour", Colour)
        str(refused.value).encode()


def test_whole_numbers_are_no_bools_and_stay_in_bounds():
    class Level(IntEnum):
        HIGH = 3

    assert check_int(5, "priority", minimum=0, maximum=9) == 5
    assert type(check_int(Level.HIGH, "priority")) is int
    for value, why in [
        (True, "not bool"),
        (1.0, "not float"),
        ("1", "not str"),
        (-1, "at least 0"),
        (10, "at most 9"),
        (10**5000, "at most 9.*bits"),
    ]:
        with pytest.raises(InvalidArgument, match=why):
            check_int(value, "priority", minimum=0, maximum=9)


RUN = "019a0000-0000-7000-8000-a1b2c3d4e5f6"
SAFE = re.compile(r"[A-Za-z0-9._:/-]+")


def test_a_task_id_reads_like_what_it_runs():
    assert task_id_for("order-42", RUN, "charge", 3, 1) == "order-42/a1b2c3d4e5f6/charge:3.1"
    assert task_id_for("tenant/order 42", RUN, "é", 1, 12) == "tenant/order:2042/a1b2c3d4e5f6/:C3:A9:1.12"


def test_runs_of_the_same_minute_have_different_task_ids():
    other = "019a0000-0000-7000-8000-a1b2c3d4e5f7"
    assert task_id_for("w", RUN, "charge", 1, 1) != task_id_for("w", other, "charge", 1, 1)


def test_long_ids_that_differ_at_the_end_have_different_task_ids():
    ids = {task_id_for("x" * 200 + end, RUN, "y" * 200 + end, 1, 1) for end in "abc"}
    assert len(ids) == 3


@given(st.text(max_size=300), st.text(max_size=300), st.integers(1, 10**9), st.integers(1, 10**6))
def test_a_task_id_is_short_and_safe_whatever_the_names(workflow_id, name, number, attempt):
    task_id = task_id_for(workflow_id, RUN, name, number, attempt)
    assert len(task_id) <= 155
    assert SAFE.fullmatch(task_id)
    assert task_id.endswith(f":{number}.{attempt}")
    assert "/a1b2c3d4e5f6/" in task_id


@given(st.text(max_size=20), st.text(max_size=20))
def test_different_short_ids_escape_differently(one, other):
    if one != other:
        assert task_id_for(one, RUN, "a", 1, 1) != task_id_for(other, RUN, "a", 1, 1)
