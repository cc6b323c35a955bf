"""What can't be stored is refused at the call, by type and place, before anything is stored."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, SecretStr, field_validator

from orchestrator.errors import InvalidArgument, PayloadError
from orchestrator.model.payloads import PayloadConverter
from tests.unit.model import payload_types as t

converter = PayloadConverter()


@dataclass
class Basket:
    items: list[Any] = field(default_factory=list)
    ratio: float = 1.0
    price: Decimal = Decimal(1)
    note: str = ""
    counts: dict[str, float] = field(default_factory=dict)


class BasketModel(BaseModel):
    items: list[Any] = []
    ratio: float = 1.0
    price: Any = None


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("value", "hint", "path"),
    [
        (NAN, Any, "value"),
        (INF, float, "value"),
        (-INF, float | None, "value"),
        (1e308 * 10, Any, "value"),
        (Decimal("NaN"), Decimal, "value"),
        (Decimal("sNaN"), Any, "value"),
        (Decimal("-Infinity"), Decimal, "value"),
        ([1, 2, NAN], Any, "value[2]"),
        ([1, 2, NAN], list[float], "value[2]"),
        ((1.0, INF), tuple[float, float], "value[1]"),
        ({"items": [0, 1, 2, {"price": NAN}]}, Any, "value.items[3].price"),
        ({"a b": NAN}, Any, "value['a b']"),
        ({"a b": NAN}, dict[str, float], "value['a b']"),
        ({NAN: 1}, dict[float, int], "value"),
        ({NAN: 1}, Any, "value"),
        (Basket(items=[0, 1, 2, {"price": INF}]), Basket, "value.items[3].price"),
        (Basket(items=[0, 1, 2, {"price": INF}]), Any, "value.items[3].price"),
        (Basket(ratio=NAN), Basket, "value.ratio"),
        (Basket(price=Decimal("NaN")), Basket, "value.price"),
        (Basket(counts={"x": NAN}), Basket, "value.counts.x"),
        (BasketModel(ratio=NAN), BasketModel, "value.ratio"),
        (BasketModel(price=Decimal("NaN")), BasketModel, "value.price"),
        ([Basket(), Basket(ratio=NAN)], list[Basket], "value[1].ratio"),
        ({"k": [BasketModel(items=[NAN])]}, Any, "value.k[0].items[0]"),
        ({NAN}, set[float], "value{}"),
    ],
)
def test_nan_and_infinity_are_refused_with_their_path(value, hint, path):
    with pytest.raises(PayloadError, match="JSON has no such number") as refused:
        converter.encode(value, hint)
    assert refused.value.argument == path


@pytest.mark.parametrize(
    ("value", "hint", "path"),
    [
        ("\ud800x", str, "value"),
        ("x\udfff", Any, "value"),
        ("\ud83d\ude00", Any, "value"),
        (["ok", "\ud800"], Any, "value[1]"),
        (["ok", "\ud800"], list[str], "value[1]"),
        ({"k": ("\ud800",)}, Any, "value.k[0]"),
        ({"\ud800": 1}, Any, "value['\\ud800']"),
        ({"\ud800": 1}, dict[str, int], "value"),
        (Basket(note="\ud800"), Basket, "value.note"),
        (Basket(items=[{"\ud800"}]), Basket, "value.items[0]{}"),
        (Path("/\udcff"), str | Path, "value"),
        (Path("/\udcff"), Any, "value"),
    ],
)
def test_lone_surrogates_are_refused_with_their_path(value, hint, path):
    with pytest.raises(PayloadError, match=r"surrogate|surrogates") as refused:
        converter.encode(value, hint)
    assert refused.value.argument == path
    str(refused.value).encode()


def nested(levels: int, leaf: Any = 0) -> Any:
    value = leaf
    for _ in range(levels):
        value = [value]
    return value


def itself_in_a_list() -> Any:
    value: list[Any] = [1]
    value.append(value)
    return value


def itself_in_a_dict() -> Any:
    value: dict[str, Any] = {}
    value["a"] = [{"b": value}]
    return value


def itself_in_a_dataclass() -> Any:
    value = Basket()
    value.items.append(value)
    return value


@pytest.mark.parametrize("hint", [Any, list[Any], Any | None, dict[str, Any], Basket])
@pytest.mark.parametrize(
    "value",
    [
        nested(129),
        nested(3000),
        nested(100_000),
        {"a": nested(3000)},
        itself_in_a_list(),
        itself_in_a_dict(),
        itself_in_a_dataclass(),
        deque([nested(3000)]),
        Basket(items=nested(3000)),
    ],
    ids=range(9),
)
def test_deep_and_circular_values_are_refused_and_never_a_recursion_error(value, hint):
    with pytest.raises(PayloadError):
        converter.encode(value, hint)


def test_a_deep_recursive_model_is_refused():
    deep = t.Node(value=1)
    for _ in range(300):
        deep = t.Node.model_construct(value=1, children=[deep])
    with pytest.raises(PayloadError, match="levels deep"):
        converter.encode(deep, t.Node)
    circular = t.Node(value=1)
    circular.children.append(circular)
    with pytest.raises(PayloadError, match="contains itself"):
        converter.encode(circular, t.Node)


@pytest.mark.parametrize("hint", [Any, list[Any]])
def test_as_many_levels_as_documented_are_fine(hint):
    value = nested(128)
    assert converter.decode(converter.encode(value, hint).data, hint) == value
    with pytest.raises(PayloadError, match="more than 128 levels"):
        converter.encode(nested(129), hint)


def test_depth_does_not_depend_on_the_stack():
    def at_depth(frames: int) -> Any:
        if frames:
            return at_depth(frames - 1)
        return converter.decode(converter.encode(nested(100)).data)

    assert at_depth(sys.getrecursionlimit() // 2) == nested(100)


class Hostile:
    def __repr__(self):
        raise RuntimeError("repr")

    def __eq__(self, other):
        raise RuntimeError("eq")

    __hash__ = object.__hash__

    def __reduce__(self):
        raise RuntimeError("reduce")

    def __str__(self):
        raise RuntimeError("str")


class HostileDict(dict):
    def items(self):
        raise RuntimeError("items")

    def __eq__(self, other):
        raise RuntimeError("eq")

    __hash__ = None


class Pretender:
    @property
    def __class__(self):
        raise RuntimeError("class")


def strangers() -> list[Any]:
    return [
        threading.Lock(),
        object(),
        (n for n in "ab"),
        iter([1]),
        range(3),
        len,
        lambda: None,
        asyncio.Future(loop=asyncio.new_event_loop()),
        ValueError("x"),
        int,
        Basket,
        Hostile(),
        Pretender(),
        SecretStr("hidden"),
        sys,
        {}.keys(),
    ]


@pytest.mark.parametrize("index", range(len(strangers())))
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [1, x], lambda x: {"a": x}, lambda x: Basket(items=[x])])
@pytest.mark.parametrize("hint", [Any, list[Any], dict[str, Any], Basket, str, int, object])
def test_objects_without_a_json_form_are_refused_whatever_they_do(index, wrap, hint):
    value = wrap(strangers()[index])
    with pytest.raises(PayloadError) as refused:
        converter.encode(value, hint)
    str(refused.value).encode()


def test_the_error_names_type_and_place_of_a_stranger():
    with pytest.raises(PayloadError, match=r"object of type _thread.lock can't be stored") as refused:
        converter.encode({"a": [threading.Lock()]}, argument="order")
    assert refused.value.argument == "order.a[0]"
    with pytest.raises(PayloadError, match=r"object of type _thread.lock") as refused:
        converter.encode(Basket(items=[threading.Lock()]), Basket, argument="order")
    assert refused.value.argument == "order.items[0]"
    with pytest.raises(PayloadError, match="generator") as refused:
        converter.encode([(n for n in "ab")], list[Any])
    assert refused.value.argument == "value[0]"


def test_an_open_file_and_hostile_containers_are_refused(tmp_path):
    with (tmp_path / "x").open("w") as file, pytest.raises(PayloadError, match="TextIOWrapper"):
        converter.encode(file)
    for hint in (Any, dict[str, Any]):
        with pytest.raises(PayloadError):
            converter.encode([HostileDict(a=object())], hint)


@pytest.mark.parametrize(
    "hint",
    [type(threading.Lock()), Callable[[], int], type[int], range, "Unresolved", list["Unresolved"]],  # noqa: F821
)
def test_hints_that_cannot_be_stored_are_refused_by_name(hint):
    with pytest.raises(PayloadError, match="mutex"):
        converter.encode(1, hint, argument="mutex")


SAMPLES: list[tuple[Any, Any]] = [
    ("5", str),
    (5, int),
    (True, bool),
    (5.5, float),
    (None, None),
    (b"YQ==", bytes),
    ("YQ==", str),
    ("1.5", str),
    (Decimal(5), Decimal),
    (UUID(int=5), UUID),
    ("00000000-0000-0000-0000-000000000005", str),
    (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime),
    ("2024-01-01", str),
    (dt.date(2024, 1, 1), dt.date),
    (dt.time(1), dt.time),
    (dt.timedelta(5), dt.timedelta),
    (t.Colour.RED, t.Colour),
    (t.Size.SMALL, t.Size),
    ("s", str),
    (t.Level.HIGH, t.Level),
    ([5], list[int]),
    (["5"], list[str]),
    ([True], list[bool]),
    ({5}, set[int]),
    ((5,), tuple[int]),
    ({"a": 5}, dict[str, int]),
    ({"name": "rex"}, dict[str, str]),
    ({5: 5}, dict[int, int]),
    (t.Cat("rex"), t.Cat),
    (t.Dog("rex"), t.Dog),
    (t.Node(value=5), t.Node),
    (t.Box[int](content=5), t.Box[int]),
    (t.Crate("5"), t.Crate[str]),
    (t.Point(5), t.Point),
    (Path("5"), Path),
    (Basket(), Basket),
]


def fitting(value: Any, again: Any) -> bool:
    """The ways in which a value may come back as another type, because its hint says so."""
    if type(value) is type(again):
        return bool(value == again)
    if isinstance(value, bool) or isinstance(again, bool):
        return False
    if isinstance(value, (t.Size, t.Level)) or (isinstance(value, int) and isinstance(again, float)):
        return bool(value == again)
    sequences = (list, tuple)
    return isinstance(value, sequences) and isinstance(again, sequences) and list(value) == list(again)


@pytest.mark.parametrize("hint", [hint for _, hint in SAMPLES], ids=str)
def test_a_value_of_another_type_than_its_hint_is_refused(hint):
    for value, own in SAMPLES:
        try:
            data = converter.encode(value, hint).data
        except PayloadError:
            assert own is not hint, f"{value!r} fits {hint}"
        else:
            again = converter.decode(data, hint)
            assert fitting(value, again), f"{value!r} became {again!r} under {hint}"


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        (True, int, "give int, not bool"),
        ("5", int, "give int, not str"),
        (5, str, "give str, not int"),
        (1, bool, "give bool, not int"),
        (5.0, int, "give int, not float"),
        (None, str, "give str, not NoneType"),
        (10**400, float, "OverflowError|not int"),
        (2**53 + 1, float, "give float, not int"),
        ([1, True], list[int], r"value\[1\]: give int, not bool"),
        ({"a": "x"}, dict[str, int], r"value\.a: Input should be a valid integer, not str"),
        (Basket(ratio="1.5"), Basket, r"value\.ratio: Input should be a valid number, not str"),
        (Basket(counts=None), Basket, r"value\.counts: Input should be an object"),
        (t.Line("a", Decimal(1), quantity=True), t.Line, r"value\.quantity: give int, not bool"),
        ({"sku": "a"}, t.Line, "wrong type: give `Line`, not dict"),
    ],
)
def test_the_refusal_says_what_was_expected(value, hint, message):
    with pytest.raises(PayloadError, match=message):
        converter.encode(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (Decimal("1.10"), Decimal | str),
        (UUID(int=1), str | UUID),
        (dt.date(2024, 1, 1), dt.date | str),
        (b"a", bytes | str),
        ({"a": {1}}, dict[str, list[int] | set[int]]),
        (t.Dog("rex"), t.Cat | t.Dog),
        ([t.Cat("a"), t.Dog("b")], list[t.Cat | t.Dog]),
        (t.Crate(t.Dog("rex")), t.Crate[t.Cat | t.Dog]),
    ],
)
def test_a_union_that_would_pick_another_member_is_refused_instead(value, hint):
    try:
        again = converter.decode(converter.encode(value, hint).data, hint)
    except PayloadError as error:
        assert "ambiguous" in error.reason  # noqa: PT017 - either is right
    else:
        assert again == value
        assert type(again) is type(value)


def test_a_secret_is_refused_rather_than_masked():
    class Login(BaseModel):
        user: str
        password: SecretStr

    for value, hint in [(SecretStr("x"), SecretStr), (Login(user="a", password=SecretStr("x")), Login)]:
        with pytest.raises(PayloadError, match="secret"):
            converter.encode(value, hint)
    assert converter.encode("**********", str)


def test_errors_never_show_the_value():
    for value, hint in [("hunter2", int), (["hunter2"], list[int]), (Basket(ratio="hunter2"), Basket)]:
        with pytest.raises(PayloadError) as refused:
            converter.encode(value, hint)
        assert "hunter2" not in str(refused.value)


def test_a_validator_that_raises_is_named():
    class Picky(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def check(cls, name: str) -> str:
            raise RuntimeError("out of order")

    with pytest.raises(PayloadError, match="RuntimeError: out of order"):
        converter.encode(Picky.model_construct(name="x"), Picky)


def test_the_size_limit_tells_both_sizes():
    small = PayloadConverter(limit=100)
    assert small.encode("x" * 97).data
    with pytest.raises(PayloadError, match=r"order: is 101 bytes stored, over the limit of 100"):
        small.encode("x" * 98, argument="order")
    with pytest.raises(PayloadError, match="over the limit"):
        small.encode_args(["x" * 60, "y" * 60], [str, str], names=["a", "b"])
    with pytest.raises(PayloadError, match=r"2,097,1\d\d bytes"):
        PayloadConverter().encode("x" * 2 * 1024 * 1024)


def test_a_payload_error_is_an_invalid_argument():
    assert issubclass(PayloadError, InvalidArgument)


def test_a_long_path_is_shortened():
    value: Any = NAN
    for _ in range(60):
        value = {"a_rather_long_name": value}
    with pytest.raises(PayloadError) as refused:
        converter.encode(value)
    assert len(refused.value.argument) < 220
