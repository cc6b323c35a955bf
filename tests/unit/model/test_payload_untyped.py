"""Values without a type hint: JSON as it is, the documented form beyond it, and nothing altered silently."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import PayloadError
from orchestrator.model.payloads import PayloadConverter
from tests.unit.model import payload_types as t

converter = PayloadConverter()

TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


def round_trip(value: Any) -> Any:
    return converter.decode(converter.encode(value).data)


@given(JSON)
def test_json_returns_exactly(value):
    again = round_trip(value)
    assert again == value
    assert json.dumps(again) == json.dumps(value)


@given(JSON)
def test_the_digest_is_that_of_the_canonical_text(value):
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    assert converter.encode(value).digest == hashlib.blake2b(canonical, digest_size=16).hexdigest()


@pytest.mark.parametrize(
    "value",
    [
        {"__type__": "x", "__value__": 1},
        {"$ref": "#/a", "@class": "java.lang.Object", "py/object": "os.system"},
        {"__reduce__": [1], "type": "any", "args": [], "kwargs": {}},
        {"\x00": "\x00", "": "", "a\x00b": "\uffff"},
        [[], {}, [[]], ""],
        -0.0,
    ],
)
def test_data_that_looks_like_a_marker_is_just_data(value):
    assert repr(round_trip(value)) == repr(value)


@pytest.mark.parametrize("digits", [20, 700, 4299, 4300, 4301, 9000])
def test_integers_of_any_size_are_exact(digits):
    number = 10**digits + 7
    assert converter.decode(converter.encode(number).data) == number
    assert converter.decode(converter.encode(number, int).data, int) == number
    for value, hint in [
        ([number, -number], Any),
        ({"a": {"b": number}}, Any),
        ({"b": 1, "a": (number,)}, Any),
        ([number], list[int]),
        (t.Node(value=number), t.Node),
        ({1: number}, dict[int, int]),
    ]:
        again = converter.decode(converter.encode(value, hint).data, hint)
        assert again == (json_form(value) if hint is Any else value)


def json_form(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [json_form(member) for member in value]
    return {key: json_form(member) for key, member in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ((1, 2), [1, 2]),
        (deque([1]), [1]),
        (namedtuple("P", "a b")(1, "x"), [1, "x"]),  # noqa: PYI024
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({1, "a", None, (2, 3)}, ["a", 1, [2, 3], None]),
        (b"\x00\xff\xfe", "AP_-"),
        (bytearray(b"a"), "YQ=="),
        (memoryview(b"a"), "YQ=="),
        (dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC), "2024-01-02T03:04:05.000006Z"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (dt.time(1, 2), "01:02:00"),
        (dt.timedelta(days=1, seconds=1), "P1DT1S"),
        (Decimal("1.10"), "1.10"),
        (Fraction(1, 3), "1/3"),
        (1 + 2j, "1+2j"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("/a/b"), "/a/b"),
        (t.Colour.RED, "RED"),
        (t.Level.HIGH, 2),
        (t.Size.LARGE, "l"),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        ({1: "a", 2.5: "b", None: "c", False: "d"}, {"1": "a", "2.5": "b", "null": "c", "false": "d"}),
        ({dt.date(2024, 1, 1): 1, UUID(int=1): 2}, {"2024-01-01": 1, "00000000-0000-0000-0000-000000000001": 2}),
        ({t.Size.SMALL: 1}, {"s": 1}),
        (t.Line("a", Decimal("1.10")), {"sku": "a", "price": "1.10", "quantity": 1}),
        (t.Box[bytes](content=b"\xff"), {"content": "_w=="}),
        ([t.Crate(dt.date(2024, 1, 1))], [{"content": "2024-01-01"}]),
    ],
    ids=(f"case {number}" for number in itertools.count()),
)
def test_other_values_have_the_documented_form(value, form):
    assert round_trip(value) == form
    assert round_trip([value]) == [form]
    assert converter.decode(converter.encode([value], list[Any]).data) == [form]
    assert converter.decode(converter.encode(t.Box(content=value), t.Box).data) == {"content": form}


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (t.Line("a", Decimal("1.10")), t.Line),
        (t.Node(value=1, children=[t.Node(value=2)]), t.Node),
        (t.Colour.GREEN, t.Colour),
        ({b"\xff"}, set[bytes]),
        (dt.timedelta.min, dt.timedelta),
        (t.Order(id=UUID(int=1), lines=[]), t.Order),
    ],
)
def test_what_was_sent_without_a_hint_is_read_with_one(value, hint):
    """A call by name has no hints; the function it reaches has."""
    assert converter.decode(converter.encode(value).data, hint) == value
    assert converter.encode(value).digest == converter.encode(value, hint).digest


@pytest.mark.parametrize("hint", [Any, dict[Any, Any], dict[int | str, str]])
def test_keys_that_would_become_one_are_refused(hint):
    with pytest.raises(PayloadError, match="same JSON key"):
        converter.encode({1: "a", "1": "b"}, hint)


def test_a_key_that_reads_like_a_none_key_is_refused_where_both_are_possible():
    with pytest.raises(PayloadError, match="key"):
        converter.encode({"null": 1}, dict[str | None, int])
    assert round_trip({"null": 1}) == {"null": 1}


def test_keys_without_a_text_are_refused():
    for hint in (Any, dict[Any, int]):
        with pytest.raises(PayloadError, match="key of type tuple can't be stored"):
            converter.encode({(1, 2): 3}, hint)
    with pytest.raises(PayloadError):
        converter.encode({(1, 2): 3}, dict[tuple[int, int], int])


@given(st.binary(max_size=40))
def test_reading_bytes_that_are_no_payload_is_an_error_that_names_the_argument(data):
    for hint in (Any, str, int, list[int], t.Line):
        try:
            converter.decode(data, hint, argument="amount")
        except PayloadError as error:
            assert str(error).startswith("amount")  # noqa: PT017 - bytes that happen to fit are fine


def test_what_is_stored_is_readable_json():
    assert converter.encode({"order": "42", "ü": [1.5, None]}).data == 'j{"order":"42","ü":[1.5,null]}'.encode()
