"""Failures: any exception becomes a bounded, storable value, and what was raised stays visible."""

from __future__ import annotations

import asyncio
import gc
import weakref
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import errors
from orchestrator.errors import InvalidArgument, PayloadError
from orchestrator.model.failures import (
    CAUSE_LIMIT,
    Failure,
    FailureKind,
    decode_failure,
    encode_failure,
    error_type_name,
    exception_from_failure,
    failure_from_exception,
    failure_matches,
)
from orchestrator.model.payloads import PayloadConverter

converter = PayloadConverter()


class CardDeclined(Exception):
    pass


class LostCard(CardDeclined, LookupError):
    pass


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def stored(failure: Failure) -> Failure:
    return decode_failure(converter, encode_failure(converter, failure))


def causes(failure: Failure) -> list[Failure]:
    found = []
    while failure.cause is not None:
        failure = failure.cause
        found.append(failure)
    return found


def test_an_error_is_told_by_its_classes_message_and_place():
    failure = failure_from_exception(raised(LostCard("no 42")))
    module = __name__
    assert failure.kind is FailureKind.APPLICATION
    assert failure.type == "LostCard"
    assert failure.types == (
        f"{module}.LostCard",
        f"{module}.CardDeclined",
        "builtins.LookupError",
    )
    assert failure.message == "no 42"
    assert "test_failures.py" in (failure.traceback or "")
    assert failure.details is None
    assert not failure.non_retryable
    assert stored(failure) == failure


def test_a_failure_is_of_its_class_and_of_the_bases_of_its_class():
    failure = failure_from_exception(LostCard("x"))
    for error in (
        LostCard,
        CardDeclined,
        LookupError,
        Exception,
        "LostCard",
        "CardDeclined",
        f"{__name__}.CardDeclined",
    ):
        assert failure.is_type(error), error
        assert failure_matches(failure, [error_type_name(error)])
    for error in (ValueError, KeyError, "Lost", "other.module", "", "builtins.CardDeclined"):
        assert not failure_matches(failure, [error if isinstance(error, str) else error_type_name(error)]), error
    assert not failure_matches(failure, [])
    assert failure_matches(failure, ["ValueError", "LookupError"])


def test_a_class_that_moved_to_another_module_still_matches_but_a_builtin_never_does():
    moved = Failure(kind=FailureKind.APPLICATION, type="CardDeclined", types=("old.place.CardDeclined",))
    assert moved.is_type(CardDeclined)

    class ConnectionError(Exception):
        pass

    theirs, builtin = failure_from_exception(ConnectionError()), failure_from_exception(builtin_connection_error())
    assert theirs.is_type(ConnectionError)
    assert not theirs.is_type(type(builtin_connection_error()))
    assert builtin.is_type(OSError)
    assert not builtin.is_type(ConnectionError)
    assert builtin.is_type("ConnectionError")
    assert theirs.is_type("ConnectionError")
    named = failure_from_exception(errors.ApplicationError("x", type="CardDeclined"))
    assert named.is_type(CardDeclined)
    assert named.is_type("CardDeclined")


def builtin_connection_error() -> BaseException:
    return ConnectionError("refused")


def test_names_of_error_types():
    assert error_type_name(CardDeclined) == f"{__name__}.CardDeclined"
    assert error_type_name("CardDeclined") == "CardDeclined"
    for wrong in (1, int, None, "", " x", ValueError("x"), b"x"):
        with pytest.raises(InvalidArgument, match="^error type: "):
            error_type_name(wrong)  # type: ignore[arg-type]


def test_an_application_error_carries_its_options():
    error = errors.ApplicationError(
        "declined", {"code": 51}, (1, 2), type="Declined", non_retryable=True, next_retry_delay=timedelta(seconds=90)
    )
    failure = stored(failure_from_exception(error))
    assert failure.type == "Declined"
    assert failure.details == [{"code": 51}, [1, 2]]
    assert failure.non_retryable
    assert failure.next_retry_delay_us == 90_000_000
    assert failure.is_type("Declined")
    assert failure.is_type(errors.ApplicationError)
    assert failure_from_exception(errors.ApplicationError("x", next_retry_delay=timedelta(0))).next_retry_delay_us == 0
    assert (
        stored(failure_from_exception(errors.ApplicationError("x", next_retry_delay=timedelta(0)))).next_retry_delay_us
        == 0
    )


def test_details_that_cannot_be_stored_leave_the_error_visible():
    failure = stored(failure_from_exception(errors.ApplicationError("err", object(), "fine", float("nan"), "\ud800")))
    assert failure.message == "err"
    assert failure.details is not None
    assert "object of type object can't be stored" in failure.details[0]
    assert failure.details[1] == "fine"
    assert "NaN" in str(failure.details[2]) or "nan" in str(failure.details[2])
    assert "surrogate" in failure.details[3]


def test_a_converter_that_refuses_details_leaves_the_error_visible():
    class Picky(PayloadConverter):
        def encode(self, value: object, hint: Any = Any, *, argument: str = "value") -> Any:
            if isinstance(value, dict) and "details" in value and value["details"] == [{"secret": 1}]:
                raise TypeError("only harmless things")
            return super().encode(value, hint, argument=argument)

    failure = failure_from_exception(errors.ApplicationError("err", {"secret": 1}))
    again = decode_failure(converter, encode_failure(Picky(), failure))
    assert again.message == "err"
    assert again.details == ["the details can't be stored: only harmless things"]


def test_a_codec_that_fails_is_not_passed_over():
    class Broken:
        name = "broken"

        def encode(self, data: bytes, /) -> bytes:
            raise ConnectionError("no key server")

        decode = encode

    with pytest.raises(ConnectionError):
        encode_failure(PayloadConverter([Broken()]), failure_from_exception(ValueError("x")))


def test_a_failure_over_the_limit_sheds_details_then_tracebacks_then_causes():
    error = raised(errors.ApplicationError("top " + "m" * 2000, "d" * 5000), raised(ValueError("below " + "n" * 5000)))
    failure = failure_from_exception(error)
    for limit in (20_000, 12_000, 6_000, 2_500):
        small = PayloadConverter(limit=limit)
        data = encode_failure(small, failure)
        assert len(data) <= limit
        assert decode_failure(small, data).message.startswith("top mmm")
    again = decode_failure(converter, encode_failure(PayloadConverter(limit=12_000), failure))
    assert "over the limit" in again.details[0]


@pytest.mark.parametrize(
    ("error", "kind", "attributes"),
    [
        (errors.ActivityTimeout("late", timeout_type="heartbeat"), FailureKind.TIMEOUT, {"timeout_type": "heartbeat"}),
        (errors.WorkerLost("gone"), FailureKind.WORKER_LOST, {}),
        (errors.Cancelled("stop"), FailureKind.CANCELLED, {}),
        (asyncio.CancelledError(), FailureKind.CANCELLED, {}),
        (
            errors.WorkflowFailed("x", workflow_id="w", run_id="r"),
            FailureKind.WORKFLOW,
            {"workflow_id": "w", "run_id": "r"},
        ),
        (TimeoutError("x"), FailureKind.APPLICATION, {}),
        (KeyboardInterrupt(), FailureKind.APPLICATION, {}),
        (SystemExit(3), FailureKind.APPLICATION, {}),
    ],
)
def test_the_kind_follows_the_class(error, kind, attributes):
    failure = stored(failure_from_exception(error))
    assert failure.kind is kind
    assert failure.attributes == attributes
    assert failure.type == type(error).__name__


def test_exceptions_of_the_library_are_rebuilt_from_their_failures():
    timeout = exception_from_failure(failure_from_exception(errors.ActivityTimeout("late", timeout_type="heartbeat")))
    assert isinstance(timeout, errors.ActivityTimeout)
    assert timeout.timeout_type == "heartbeat"
    bare = Failure(kind=FailureKind.TIMEOUT, type="ActivityTimeout", details=["start_to_close"])
    assert bare.is_type(errors.ActivityTimeout)
    assert exception_from_failure(bare).timeout_type == "start_to_close"
    assert isinstance(exception_from_failure(failure_from_exception(errors.WorkerLost("x"))), errors.WorkerLost)
    assert isinstance(exception_from_failure(failure_from_exception(errors.Cancelled("x"))), errors.Cancelled)
    error = exception_from_failure(failure_from_exception(raised(LostCard("x"), ValueError("why"))))
    assert isinstance(error, errors.ApplicationError)
    assert (error.type, error.message, error.details) == ("LostCard", "x", ())
    assert isinstance(error.__cause__, errors.ApplicationError)
    assert error.__cause__.type == "ValueError"
    options = errors.ApplicationError("x", 1, type="T", non_retryable=True, next_retry_delay=timedelta(seconds=1))
    again = exception_from_failure(stored(failure_from_exception(options)))
    assert isinstance(again, errors.ApplicationError)
    assert (again.details, again.type, again.non_retryable, again.next_retry_delay) == (
        (1,),
        "T",
        True,
        timedelta(seconds=1),
    )


def test_an_activity_error_that_leaves_workflow_code_keeps_its_cause():
    cause = failure_from_exception(LostCard("no 42"))
    rebuilt = exception_from_failure(cause)
    assert isinstance(rebuilt, errors.FailureCause)
    error = errors.ActivityError("charge failed", activity="charge", number=3, attempt=10, cause=rebuilt, failure=cause)
    failure = stored(failure_from_exception(raised(error)))
    assert failure.kind is FailureKind.ACTIVITY
    assert failure.cause == cause
    again = exception_from_failure(failure)
    assert isinstance(again, errors.ActivityError)
    assert (again.activity, again.number, again.attempt, again.type) == ("charge", 3, 10, "LostCard")
    assert again.is_type(CardDeclined)
    assert isinstance(again.cause, errors.ApplicationError)


def test_an_error_rebuilt_and_raised_again_is_the_failure_it_came_from():
    failure = failure_from_exception(raised(LostCard("x"), ValueError("why")))
    again = exception_from_failure(failure)
    assert failure_from_exception(raised(again, KeyError("other"))) is failure


def test_causes_follow_from_and_context_and_respect_from_none():
    chained = failure_from_exception(raised(ValueError("a"), raised(KeyError("b"), TypeError("c"))))
    assert [cause.type for cause in causes(chained)] == ["KeyError", "TypeError"]

    def replace_error(*, hide: bool) -> None:
        try:
            raise KeyError("inner")
        except KeyError:
            if hide:
                raise ValueError("outer") from None
            raise ValueError("outer")  # noqa: B904 - the implicit context is what is tested

    with pytest.raises(ValueError, match="outer") as seen:
        replace_error(hide=False)
    assert [cause.type for cause in causes(failure_from_exception(seen.value))] == ["KeyError"]
    with pytest.raises(ValueError, match="outer") as hidden:
        replace_error(hide=True)
    assert causes(failure_from_exception(hidden.value)) == []


def test_a_chain_of_600_is_cut_with_a_note():
    error: BaseException = ValueError("0")
    for number in range(1, 601):
        error = raised(ValueError(str(number)), error)
    failure = stored(failure_from_exception(error))
    chain = causes(failure)
    assert failure.message == "600"
    assert len(chain) == CAUSE_LIMIT + 1
    assert chain[-1].message == f"(cut: {600 - CAUSE_LIMIT} more causes were cut off here)"


def test_a_chain_far_longer_than_the_stack_is_cut_too():
    error = ValueError("first")
    for _ in range(20_000):
        following = ValueError("x")
        following.__cause__ = error
        error = following
    assert "more causes" in causes(failure_from_exception(error))[-1].message


def test_causes_that_go_round_in_a_circle_are_cut_with_a_note():
    itself = ValueError("self")
    itself.__cause__ = itself
    assert [cause.message for cause in causes(stored(failure_from_exception(itself)))] == [
        "(cut: the chain of causes goes round in a circle here)"
    ]
    a, b = ValueError("a"), KeyError("b")
    a.__cause__, b.__cause__ = b, a
    chain = causes(failure_from_exception(a))
    assert [cause.type for cause in chain] == ["KeyError", "ValueError"]
    assert "circle" in chain[-1].message


def test_a_circle_through_a_group_is_cut():
    member = ValueError("member")
    group = ExceptionGroup("group", [member, KeyError("k")])
    member.__context__ = group
    failure = stored(failure_from_exception(group))
    assert [one.type for one in failure.extra] == ["ValueError", "KeyError"]
    assert failure.extra[0].cause is not None
    assert "circle" in failure.extra[0].cause.message


def test_the_members_of_a_group_are_kept_in_bounds():
    nested: BaseException = ValueError("leaf")
    for _ in range(100):
        nested = BaseExceptionGroup("level", [nested, KeyError("k")])
    failure = failure_from_exception(nested)
    assert len(encode_failure(converter, failure)) < 500_000
    wide = stored(failure_from_exception(ExceptionGroup("wide", [ValueError(str(n)) for n in range(1000)])))
    assert len(wide.extra) == 21
    assert wide.extra[-1].message == "(cut: 980 more members were cut off here)"
    assert wide.message == "wide (1000 sub-exceptions)"
    bush: BaseException = ValueError("leaf")
    for _ in range(6):
        bush = ExceptionGroup("bush", [bush] * 10)
    assert len(encode_failure(converter, failure_from_exception(bush))) < 500_000


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class LyingNotes(Exception):
    @property
    def __notes__(self) -> Any:
        raise RuntimeError("no notes")


def test_an_error_whose_text_raises_is_reported_all_the_same():
    failure = stored(failure_from_exception(raised(Unspeakable(), LyingNotes("x"))))
    assert failure.type == "Unspeakable"
    assert failure.message == "(its message can't be read: str() raised RuntimeError)"
    assert failure.cause is not None
    assert failure.cause.message == "x"


def test_an_error_whose_attributes_raise_is_reported_all_the_same():
    class Broken(errors.ApplicationError):
        @property
        def details(self) -> Any:
            raise RuntimeError("no details")

        @details.setter
        def details(self, value: Any) -> None: ...

    failure = failure_from_exception(Broken("x"))
    assert failure.type == "Broken"
    assert "RuntimeError" in failure.message


def test_text_that_is_no_unicode_is_escaped_and_nul_stays():
    error = ValueError("a\x00b \ud800 \uffff 🧾")
    error.add_note("note \udfff")
    failure = stored(failure_from_exception(raised(error)))
    assert failure.message == "a\x00b \\ud800 \uffff 🧾"
    assert "note: note \\udfff" in (failure.traceback or "")


def test_messages_and_tracebacks_are_bounded():
    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        raise ValueError("begin" + "x" * 1_000_000 + "end")

    with pytest.raises(ValueError, match="begin") as caught:
        deep(500)
    failure = failure_from_exception(caught.value)
    assert failure.message.startswith("begin")
    assert failure.message.endswith("end")
    assert "characters cut" in failure.message
    assert len(failure.message) < 9_000
    assert len(failure.traceback or "") < 17_000
    assert failure.traceback is not None
    assert failure.traceback.rstrip().endswith('raise ValueError("begin" + "x" * 1_000_000 + "end")')


def test_a_recursion_error_is_reported():
    def forever() -> None:
        forever()

    with pytest.raises(RecursionError) as caught:
        forever()
    assert stored(failure_from_exception(caught.value)).type == "RecursionError"


def test_a_failure_keeps_no_frame_alive():
    class Big:
        pass

    def work() -> tuple[Failure, weakref.ref[Big]]:
        big = Big()
        return failure_from_exception(raised(ValueError("x"))), weakref.ref(big)

    failure, alive = work()
    gc.collect()
    assert alive() is None
    assert failure.message == "x"


def test_a_failure_of_a_newer_version_is_understood():
    data = converter.encode({"kind": "quantum", "type": "X", "colour": "red", "details": 5}).data
    failure = decode_failure(converter, data)
    assert (failure.kind, failure.type, failure.details) == (FailureKind.APPLICATION, "X", [5])
    for wrong in (b"j[]", b"j1", b"j{", b"?"):
        with pytest.raises(PayloadError, match="failure"):
            decode_failure(converter, wrong)


@given(st.text(), st.lists(st.one_of(st.integers(), st.text(), st.binary(), st.floats(), st.none())))
def test_any_application_error_can_be_stored(message, details):
    failure = failure_from_exception(errors.ApplicationError(message, *details))
    assert stored(failure) == failure
    assert len(failure.details or []) == len(details)
