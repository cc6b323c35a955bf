"""Whole calls: arguments as they are given, typed parameter by parameter."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import InvalidArgument, PayloadError
from orchestrator.model.payloads import CallSignature, PayloadConverter
from tests.unit.model import payload_types as t

converter = PayloadConverter()


def ship(order: t.Line, when: dt.date, *notes: bytes, level: t.Level = t.Level.LOW, **more: Decimal) -> str:
    return f"{order} {when} {notes} {level} {more}"


SHIP = CallSignature.of(ship)
LINE = t.Line("a", Decimal("1.10"))
DAY = dt.date(2024, 1, 2)


def test_a_call_returns_with_the_types_of_its_parameters():
    args, kwargs = (LINE, DAY, b"\xff", b""), {"level": t.Level.HIGH, "extra": Decimal("2.50")}
    payload = converter.encode_call(SHIP, args, kwargs)
    assert converter.decode_call(payload.data, SHIP) == (list(args), kwargs)
    assert json.loads(payload.data[1:]) == {
        "args": [{"sku": "a", "price": "1.10", "quantity": 1}, "2024-01-02", "_w==", ""],
        "kwargs": {"level": 2, "extra": "2.50"},
    }


def test_an_empty_call_has_empty_parts():
    signature = CallSignature.of(lambda: None)
    payload = converter.encode_call(signature, (), {})
    assert payload.data == b'j{"args":[],"kwargs":{}}'
    assert converter.decode_call(payload.data, signature) == ([], {})


def test_the_digest_of_a_call_does_not_depend_on_the_order_of_keywords():
    one = converter.encode_call(SHIP, (LINE, DAY), {"x": Decimal(1), "a": Decimal(2)})
    other = converter.encode_call(SHIP, (LINE, DAY), {"a": Decimal(2), "x": Decimal(1)})
    assert one.digest == other.digest
    assert one.digest == converter.encode(json.loads(one.data[1:])).digest


@pytest.mark.parametrize(
    ("args", "kwargs", "named"),
    [
        ((LINE,), {}, "when"),
        ((LINE, "2024-01-02"), {}, "when"),
        (("a", DAY), {}, "order"),
        ((LINE, DAY, "note"), {}, "notes[0]"),
        ((LINE, DAY), {"level": 2}, "level"),
        ((LINE, DAY), {"extra": 2.5}, "extra"),
        ((LINE, DAY), {"extra": Decimal("NaN")}, "extra"),
        ((t.Line("\ud800", Decimal(1)), DAY), {}, "order.sku"),
        ((t.Line("a", Decimal(1), quantity=True), DAY), {}, "order.quantity"),
    ],
)
def test_an_argument_of_the_wrong_type_is_named(args, kwargs, named):
    with pytest.raises(InvalidArgument) as refused:
        converter.encode_call(SHIP, args, kwargs)
    assert refused.value.argument == named


@pytest.mark.parametrize(("value", "hint"), [(True, int), ("1", int), (1, str), (b"a", str), (None, int)])
def test_scalars_of_the_wrong_type_are_refused_by_parameter(value, hint):
    def function(amount): ...

    function.__annotations__["amount"] = hint
    with pytest.raises(PayloadError) as refused:
        converter.encode_call(CallSignature.of(function), (value,), {})
    assert refused.value.argument == "amount"


def test_a_call_by_name_is_read_with_the_types_of_the_function():
    data = converter.encode_call(CallSignature.untyped(), (LINE, DAY), {"level": t.Level.HIGH}).data
    assert converter.decode_call(data, SHIP) == ([LINE, DAY], {"level": t.Level.HIGH})
    with pytest.raises(PayloadError) as refused:
        converter.encode_call(CallSignature.untyped(), (1, object()), {})
    assert refused.value.argument == "args[1]"


def test_a_stored_argument_that_does_not_fit_is_named():
    data = converter.encode_call(CallSignature.untyped(), ({"sku": "a", "price": "x"}, DAY), {}).data
    with pytest.raises(PayloadError, match="does not fit") as refused:
        converter.decode_call(data, SHIP)
    assert refused.value.argument == "order.price"


@pytest.mark.parametrize("hint", [int, float, str, None])
def test_a_bool_from_a_caller_without_types_is_no_number(hint):
    data = converter.encode_args((True,), [], names=[]).data
    with pytest.raises(PayloadError, match="not bool") as refused:
        converter.decode_args(data, [hint], names=["amount"])
    assert refused.value.argument == "amount"
    with pytest.raises(PayloadError, match="not bool"):
        converter.decode(converter.encode(True).data, hint)
    assert converter.decode(converter.encode("5").data, int) == 5


def test_a_stored_call_with_more_arguments_than_the_function_is_returned_whole():
    data = converter.encode_call(CallSignature.untyped(), ("a", 1), {"gone": [1]}).data
    assert converter.decode_call(data, CallSignature.of(lambda first: None)) == (["a", 1], {"gone": [1]})


@pytest.mark.parametrize(
    "body", [b"j[]", b"j1", b'j{"args":1}', b'j{"args":[],"kwargs":[]}', b"j{", b"", b"x", b"j\xff"]
)
def test_bytes_that_are_no_call_are_refused(body):
    with pytest.raises(PayloadError, match="arguments"):
        converter.decode_call(body, SHIP)


def test_a_call_over_the_limit_is_refused_by_the_name_given():
    with pytest.raises(PayloadError, match="over the limit") as refused:
        PayloadConverter(limit=50).encode_call(CallSignature.untyped(), ("x" * 60,), {}, argument="input")
    assert refused.value.argument == "input"


def test_positional_inputs_are_an_array_with_a_type_each():
    payload = converter.encode_args(("a", DAY), [str, dt.date, int], names=["name", "day", "count"])
    assert payload.data == b'j["a","2024-01-02"]'
    assert converter.decode_args(payload.data, [str, dt.date, int]) == ["a", DAY]
    assert converter.decode_args(payload.data, [str]) == ["a", "2024-01-02"]
    assert converter.decode_args(converter.encode_args((), [], names=[]).data, [int]) == []


def test_a_positional_input_that_does_not_fit_is_named():
    for value in (True, "5", 5.5, None):
        with pytest.raises(PayloadError) as refused:
            converter.encode_args(("a", value), [str, int], names=["name", "count"])
        assert refused.value.argument == "count"
    with pytest.raises(PayloadError) as refused:
        converter.encode_args((1, object()), [], names=[])
    assert refused.value.argument == "args[1]"
    data = converter.encode_args(("a", "five"), [], names=[]).data
    with pytest.raises(PayloadError) as refused:
        converter.decode_args(data, [str, int], names=["name", "count"])
    assert refused.value.argument == "count"


@pytest.mark.parametrize("body", [b"j{}", b"j1", b"jnull", b"j[", b"q[]"])
def test_bytes_that_are_no_list_of_inputs_are_refused(body):
    with pytest.raises(PayloadError, match="arguments"):
        converter.decode_args(body, [int])


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(st.characters(codec="utf-8")),
    st.floats(allow_nan=False, allow_infinity=False),
)


@given(st.lists(SCALARS), st.dictionaries(st.text(st.characters(codec="utf-8")), SCALARS))
def test_any_call_returns(args: list[Any], kwargs: dict[str, Any]):
    untyped = CallSignature.untyped()
    data = converter.encode_call(untyped, tuple(args), kwargs).data
    assert converter.decode_call(data, untyped) == (args, kwargs)
    typed = converter.encode_args(args, [type(value) for value in args], names=[])
    assert converter.decode_args(typed.data, [type(value) for value in args]) == args
