"""Binding: arguments go to parameters as Python would put them, and an error names the parameter."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import TYPE_CHECKING, Any, Generic, Optional, ParamSpec, TypedDict, TypeVar, Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import InvalidArgument
from orchestrator.model.signatures import CallSignature

if TYPE_CHECKING:
    from somewhere import Unresolvable

P = ParamSpec("P")
T = TypeVar("T")


def charge(order_id: str, cents: int, /, currency: str = "EUR", *, retry: bool = False) -> str:
    return f"{order_id} {cents} {currency} {retry}"


async def gather(first: int, *rest: float, **named: bytes) -> list[bytes]:
    return list(named.values())


def labels(slots: Any) -> Any:
    args, kwargs = slots
    return [(slot.label, slot.hint) for slot in args], {name: (s.label, s.hint) for name, s in kwargs.items()}


def test_each_argument_gets_the_name_and_hint_of_its_parameter():
    signature = CallSignature.of(charge)
    assert labels(signature.bind(("a", 1), {"retry": True})) == (
        [("order_id", str), ("cents", int)],
        {"retry": ("retry", bool)},
    )
    assert labels(CallSignature.of(gather).bind((1, 2, 3), {"x": b""})) == (
        [("first", int), ("rest[0]", float), ("rest[1]", float)],
        {"x": ("x", bytes)},
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "named", "reason"),
    [
        (("a",), {}, "cents", "missing"),
        ((), {}, "order_id", "missing"),
        (("a", 1, "EUR", True), {}, "arguments", "takes 3 by position, but 4 were given"),
        (("a", 1, "EUR"), {"currency": "USD"}, "currency", "twice"),
        (
            ("a", 1),
            {"colour": 1},
            "colour",
            r"no parameter of that name: it takes \(order_id, cents, currency, retry\)",
        ),
        (("a",), {"cents": 1}, "cents", "by position only"),
    ],
)
def test_a_call_that_does_not_fit_names_the_parameter(args, kwargs, named, reason):
    with pytest.raises(InvalidArgument, match=reason) as refused:
        CallSignature.of(charge).bind(args, kwargs)
    assert refused.value.argument == named
    assert "charge()" in refused.value.reason


FUNCTIONS = [
    charge,
    gather,
    lambda: None,
    lambda a, b=1: None,
    lambda a, /, b, *c, d, e=2, **f: None,
    lambda *, d: None,
]


@given(
    st.sampled_from(FUNCTIONS),
    st.lists(st.integers(), max_size=5),
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "d", "order_id", "cents", "currency", "x"]), st.integers(), max_size=4
    ),
)
def test_binding_agrees_with_the_interpreter(function, args, kwargs):
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        with pytest.raises(InvalidArgument):
            CallSignature.of(function).bind(args, kwargs)
    else:
        slots, named = CallSignature.of(function).bind(args, kwargs)
        assert len(slots) == len(args)
        assert named.keys() == kwargs.keys()


def test_what_is_known_by_name_only_takes_anything():
    signature = CallSignature.untyped()
    assert not signature.is_typed
    assert labels(signature.bind((1, "a"), {"x": 2})) == ([("args[0]", Any), ("args[1]", Any)], {"x": ("x", Any)})
    assert signature.parameters == ()
    assert signature.return_hint is Any


def test_the_first_parameter_can_be_left_out():
    class Approval:
        async def run(self, amount: int) -> str:
            return str(amount)

    def bound_task(self: Any, amount: int) -> None: ...

    for function in (Approval.run, bound_task):
        signature = CallSignature.of(function, skip_first=True)
        assert [(p.name, p.hint, p.required) for p in signature.parameters] == [("amount", int, True)]
    assert CallSignature.of(Approval().run).parameters == CallSignature.of(Approval.run, skip_first=True).parameters
    assert CallSignature.of(lambda *args: None, skip_first=True).bind((1, 2), {})


def test_results_and_positions_are_known():
    signature = CallSignature.of(charge)
    assert signature.return_hint is str
    assert [p.name for p in signature.positional] == ["order_id", "cents", "currency"]
    assert [p.name for p in signature.parameters if p.required] == ["order_id", "cents"]
    assert CallSignature.of(gather).return_hint == list[bytes]

    def silent() -> None: ...

    assert CallSignature.of(silent).return_hint in (None, type(None))


def test_what_cannot_be_resolved_is_any_for_that_parameter_only():
    def function(a: Unresolvable, b: int, c: list[Unresolvable], d: "Optional[later]", e) -> Unresolvable: ...  # noqa: F821, UP037, UP045

    signature = CallSignature.of(function)
    assert [p.hint for p in signature.parameters] == [Any, int, Any, Any, Any]
    assert signature.return_hint is Any
    assert signature.unannotated == ("e",)


def later_user(value: Later) -> Later:
    return value


LATER_USER = CallSignature.of(later_user)


@dataclasses.dataclass
class Later:
    number: int


def test_a_class_defined_after_the_function_is_found():
    assert LATER_USER.parameters[0].hint is Later
    assert LATER_USER.return_hint is Later


def decorator(function):
    return CallSignature.of(function)


def test_classes_of_the_function_around_are_found_however_deep_the_decorator():
    @dataclasses.dataclass
    class Local:
        number: int

    @functools.partial(decorator)
    def outer(value: Local, more: dict[str, list[Local]]) -> Local:
        return value

    def around() -> CallSignature:
        @decorator
        def inner(value: Local | None) -> None:
            assert Local

        return inner

    class Workflow:
        def run(self, value: Local) -> Local:
            return value

    assert [p.hint for p in outer.parameters] == [Local, dict[str, list[Local]]]
    assert outer.return_hint is Local
    assert around().parameters[0].hint == Local | None
    assert CallSignature.of(Workflow.run, skip_first=True).parameters[0].hint is Local


def test_wrapped_partial_and_callable_objects_are_seen_through():
    def timed(function):
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    class Callable:
        def __call__(self, value: Later) -> None: ...

    assert CallSignature.of(timed(later_user)).parameters[0].hint is Later
    assert CallSignature.of(functools.partial(charge, "a")).parameters[0].name == "cents"
    assert CallSignature.of(functools.partial(timed(later_user))).parameters[0].hint is Later
    assert CallSignature.of(Callable()).parameters[0].hint is Later


def test_builtins_without_a_signature_take_anything():
    assert CallSignature.of(print).bind((1, 2), {"sep": ","})
    assert not CallSignature.of(dict.fromkeys.__class__).is_typed or CallSignature.of(len).bind(([],), {})


def test_a_default_of_none_allows_none():
    def function(amount: int = None, other: Any = None) -> None: ...  # noqa: RUF013

    assert [p.hint for p in CallSignature.of(function).parameters] == [Optional[int], Any]  # noqa: UP045


def test_generic_parameters_and_unpacked_dicts_are_understood():
    class Options(TypedDict):
        colour: str

    class Holder(Generic[T]):
        def put(self, value: T, *args: P.args, **kwargs: P.kwargs) -> T:
            return value

    def styled(**options: Unpack[Options]) -> None: ...

    slots, named = CallSignature.of(Holder.put, skip_first=True).bind((1, 2), {"x": 3})
    assert [slot.hint for slot in slots] == [T, Any]
    assert named["x"].hint is Any
    assert CallSignature.of(styled).bind((), {"colour": "red"})[1]["colour"].hint is Any


def test_a_stored_call_may_be_older_than_the_function():
    signature = CallSignature.of(charge)
    assert signature.slots_of_stored(5, ["retry", "gone", "cents"]) == (
        [str, int, str, Any, Any],
        {"retry": bool, "gone": Any, "cents": Any},
    )
    assert CallSignature.of(gather).slots_of_stored(3, ["x"]) == ([int, float, float], {"x": bytes})
