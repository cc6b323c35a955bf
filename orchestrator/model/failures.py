"""Failures: errors as frozen values that can be stored, and what they are told by.

``failure_from_exception`` never raises and keeps nothing alive: chains, groups, messages and tracebacks are
bounded, cycles are cut, and text that is no UTF-8 is escaped. An error that reports another one badly is worse
than the other one, so whatever can't be kept is replaced by a note and the rest stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from orchestrator import errors
from orchestrator.errors import PayloadError
from orchestrator.model.adapters import to_plain
from orchestrator.model.failure_text import class_name, clean, message_of, qualified_name, traceback_of
from orchestrator.model.failure_types import EVERYTHING, ErrorType, error_type_name, type_matches, types_of
from orchestrator.model.names import LONGEST
from orchestrator.model.payloads import PayloadConverter
from orchestrator.types import Micros, to_micros

__all__ = [
    "CAUSE_LIMIT",
    "GROUP_LIMIT",
    "ErrorType",
    "Failure",
    "FailureKind",
    "decode_failure",
    "encode_failure",
    "error_type_name",
    "exception_from_failure",
    "failure_from_exception",
    "failure_matches",
]

CAUSE_LIMIT = 20
"""Causes and groups that are kept below one another."""

GROUP_LIMIT = 20
"""Members of one exception group that are kept."""

_TOTAL_LIMIT = 100


class FailureKind(StrEnum):
    """What stands behind a failure."""

    APPLICATION = "application"
    """Code raised an error."""
    TIMEOUT = "timeout"
    """A deadline of an activity passed."""
    WORKER_LOST = "worker_lost"
    """Attempts were lost with their worker processes, too often in a row."""
    CANCELLED = "cancelled"
    """The activity or workflow was cancelled."""
    ACTIVITY = "activity"
    """An activity failed and workflow code let its error pass; the cause tells why."""
    WORKFLOW = "workflow"
    """Another workflow ended without a result; the cause tells why."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An error in its stored form.

    Attributes:
        kind: What stands behind it.
        type: Bare name of the exception class, or the ``type=`` given to an ApplicationError.
        types: Qualified names of the class and its bases, below Exception, most derived first.
        message: Text for people, bounded.
        details: Values given with the error, as a list of plain JSON; None when there are none.
        non_retryable: The error itself ends the retries.
        traceback: Text, bounded; None when there is none.
        cause: The failure behind it.
        extra: Members of an exception group.
        next_retry_delay_us: Delay before the next attempt in microseconds, instead of the policy's.
        attributes: Facts of its kind, such as ``timeout_type``, or ``activity``, ``number`` and ``attempt``.
    """

    kind: FailureKind
    type: str
    types: tuple[str, ...] = ()
    message: str = ""
    details: list[Any] | None = None
    non_retryable: bool = False
    traceback: str | None = None
    cause: Failure | None = None
    extra: tuple[Failure, ...] = ()
    next_retry_delay_us: Micros | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def is_type(self, error: ErrorType) -> bool:
        """Tells whether the error is of a class, or of a subclass of it.

        A class also matches by its bare name, so that it may move to another module while failures are
        stored; a built-in class never moves and matches exactly.

        Args:
            error: An exception class, or its bare or qualified name.
        """
        return failure_matches(self, (error_type_name(error),))


def failure_matches(failure: Failure, names: Sequence[str]) -> bool:
    """Tells whether a failure is of one of these types, or of a subclass of one.

    Args:
        failure: The failure.
        names: Bare names (``CardDeclined``) or qualified ones (``shop.errors.CardDeclined``).
    """
    if failure.kind is FailureKind.APPLICATION and not EVERYTHING.isdisjoint(names):
        return True
    return any(type_matches(failure.type, failure.types, name) for name in names)


def failure_from_exception(error: BaseException) -> Failure:
    """Returns an exception as a failure. Never raises, and keeps no frame alive.

    The chain of causes follows ``__cause__``, else ``__context__`` unless ``from None`` hid it; it is cut, with
    a note, after 20 links and where it goes round in a circle. An error rebuilt from a failure gives that
    failure back.
    """
    try:
        return _Capture().failure(error, ())
    except Exception as problem:  # noqa: BLE001 - the error must be reported, whatever its class does
        return Failure(
            kind=FailureKind.APPLICATION,
            type=class_name(type(error)),
            types=(qualified_name(type(error)),),
            message=f"(the error can't be read: {type(problem).__name__})",
        )


class _Capture:
    """One walk along an exception's causes and groups."""

    def __init__(self) -> None:
        self._left = _TOTAL_LIMIT

    def failure(self, error: BaseException, around: tuple[BaseException, ...]) -> Failure:
        self._left -= 1
        known = error.failure if isinstance(error, errors.FailureCause) else None
        if isinstance(known, Failure):
            return known
        inside = (*around, error)
        failure = Failure(
            kind=_kind_of(error),
            type=class_name(type(error)),
            types=types_of(error),
            message=message_of(error),
            traceback=traceback_of(error),
            cause=self._cause(error, inside),
            extra=self._members(error, inside),
            attributes=_attributes_of(error),
        )
        return _with_application_facts(failure, error) if isinstance(error, errors.ApplicationError) else failure

    def _cause(self, error: BaseException, inside: tuple[BaseException, ...]) -> Failure | None:
        if isinstance(error, errors.ActivityError) and isinstance(error.failure, Failure):
            return error.failure
        cause = _cause_of(error)
        if cause is None:
            return None
        if any(cause is one for one in inside):
            return _cut(cause, "the chain of causes goes round in a circle here")
        if len(inside) > CAUSE_LIMIT or self._left <= 0:
            return _cut(cause, f"{_length_from(cause)} more causes were cut off here")
        return self.failure(cause, inside)

    def _members(self, error: BaseException, inside: tuple[BaseException, ...]) -> tuple[Failure, ...]:
        if not isinstance(error, BaseExceptionGroup):
            return ()
        members: list[Failure] = []
        for index, member in enumerate(error.exceptions):
            if index == GROUP_LIMIT or len(inside) > CAUSE_LIMIT or self._left <= 0:
                members.append(_cut(member, f"{len(error.exceptions) - index} more members were cut off here"))
                break
            members.append(self.failure(member, inside))
        return tuple(members)


def _cause_of(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _length_from(error: BaseException) -> int:
    seen = {id(error)}
    following = _cause_of(error)
    while following is not None and id(following) not in seen and len(seen) < 10_000:
        seen.add(id(following))
        following = _cause_of(following)
    return len(seen)


def _cut(error: BaseException, note: str) -> Failure:
    return Failure(kind=_kind_of(error), type=class_name(type(error)), types=types_of(error), message=f"(cut: {note})")


def _kind_of(error: BaseException) -> FailureKind:
    kinds: tuple[tuple[type[BaseException], FailureKind], ...] = (
        (errors.ActivityTimeout, FailureKind.TIMEOUT),
        (errors.WorkerLost, FailureKind.WORKER_LOST),
        (errors.Cancelled, FailureKind.CANCELLED),
        (asyncio.CancelledError, FailureKind.CANCELLED),
        (errors.ActivityError, FailureKind.ACTIVITY),
        (errors.WorkflowError, FailureKind.WORKFLOW),
    )
    return next((kind for base, kind in kinds if isinstance(error, base)), FailureKind.APPLICATION)


def _attributes_of(error: BaseException) -> dict[str, Any]:
    if isinstance(error, errors.ActivityTimeout):
        return {"timeout_type": error.timeout_type}
    if isinstance(error, errors.ActivityError):
        return {"activity": error.activity, "number": error.number, "attempt": error.attempt}
    if isinstance(error, errors.WorkflowError):
        return {"workflow_id": error.workflow_id, "run_id": error.run_id}
    return {}


def _with_application_facts(failure: Failure, error: errors.ApplicationError) -> Failure:
    delay = error.next_retry_delay
    return replace(
        failure,
        type=clean(str(error.type), 255),
        details=[_detail(value, index) for index, value in enumerate(error.details)] or None,
        non_retryable=bool(error.non_retryable),
        next_retry_delay_us=min(max(0, to_micros(delay)), LONGEST) if isinstance(delay, timedelta) else None,
    )


def _detail(value: object, index: int) -> Any:
    try:
        return to_plain(value, f"details[{index}]")
    except Exception as problem:  # noqa: BLE001 - the error itself must stay visible
        return clean(f"(can't be stored: {problem})", 500)


def exception_from_failure(failure: Failure) -> Exception:
    """Returns the exception that stands for a failure: a FailureCause, or an ActivityError for an activity's.

    Causes are rebuilt with it, as its ``__cause__``; the classes of the user's code are not needed.
    """
    cause = None if failure.cause is None else exception_from_failure(failure.cause)
    error: Exception
    if failure.kind is FailureKind.ACTIVITY and failure.cause is not None and isinstance(cause, errors.FailureCause):
        error = errors.ActivityError(
            failure.message,
            activity=str(failure.attributes.get("activity", "")),
            number=int(failure.attributes.get("number", 0)),
            attempt=int(failure.attributes.get("attempt", 0)),
            cause=cause,
            failure=failure.cause,
        )
    elif failure.kind is FailureKind.TIMEOUT:
        timeout_type = failure.attributes.get("timeout_type") or next(iter(failure.details or ()), "")
        error = errors.ActivityTimeout(failure.message, timeout_type=str(timeout_type), failure=failure)
    elif failure.kind is FailureKind.WORKER_LOST:
        error = errors.WorkerLost(failure.message, failure=failure)
    elif failure.kind is FailureKind.CANCELLED:
        error = errors.Cancelled(failure.message, failure=failure)
    else:
        error = _application_error(failure)
    error.__cause__ = cause
    return error


def _application_error(failure: Failure) -> errors.ApplicationError:
    delay = failure.next_retry_delay_us
    return errors.ApplicationError(
        failure.message,
        *(failure.details or ()),
        type=failure.type,
        non_retryable=failure.non_retryable,
        next_retry_delay=None if delay is None else timedelta(microseconds=delay),
        failure=failure,
    )


def encode_failure(converter: PayloadConverter, failure: Failure) -> bytes:
    """Returns the stored form of a failure.

    Details that can't be stored, and what exceeds the converter's limit, are replaced by a note; the error
    itself stays visible.

    Raises:
        Exception: Whatever a codec raises: nothing is stored unencrypted because encryption failed.
    """
    try:
        return converter.encode(_to_json(failure), argument="failure").data
    except Exception as error:  # noqa: BLE001 - a converter of one's own may raise anything
        note = clean(f"the details can't be stored: {error}", 500)
    lighter = _without_details(failure, note)
    bare = replace(lighter, traceback=None, cause=None, extra=(), message=lighter.message[:1_000])
    for smaller in (lighter, _without_tracebacks(lighter)):
        try:
            return converter.encode(_to_json(smaller), argument="failure").data
        except Exception:  # noqa: BLE001, S112 - a smaller form is tried; the last one raises
            continue
    return converter.encode(_to_json(bare), argument="failure").data


def decode_failure(converter: PayloadConverter, data: bytes) -> Failure:
    """Returns a stored failure; kinds and fields of a newer version are tolerated.

    Raises:
        PayloadError: The bytes can't be read.
    """
    stored = converter.decode(data, argument="failure")
    if not isinstance(stored, dict):
        raise PayloadError("failure", "the stored bytes are no failure")
    return _from_json(stored)


def _to_json(failure: Failure) -> dict[str, Any]:
    everything = {
        "kind": str(failure.kind),
        "type": failure.type,
        "types": list(failure.types),
        "message": failure.message,
        "details": failure.details,
        "non_retryable": failure.non_retryable,
        "traceback": failure.traceback,
        "cause": None if failure.cause is None else _to_json(failure.cause),
        "extra": [_to_json(member) for member in failure.extra],
        "next_retry_delay_us": failure.next_retry_delay_us,
        "attributes": dict(failure.attributes) or None,
    }
    return {
        name: value for name, value in everything.items() if value is not None and value is not False and value != []
    }


def _from_json(stored: Mapping[str, Any]) -> Failure:
    kind = stored.get("kind")
    cause = stored.get("cause")
    details = stored.get("details")
    return Failure(
        kind=FailureKind(kind) if kind in set(FailureKind) else FailureKind.APPLICATION,
        type=str(stored.get("type", "")),
        types=tuple(stored.get("types", ())),
        message=str(stored.get("message", "")),
        details=list(details) if isinstance(details, (list, tuple)) else None if details is None else [details],
        non_retryable=stored.get("non_retryable", False),
        traceback=stored.get("traceback"),
        cause=_from_json(cause) if isinstance(cause, dict) else None,
        extra=tuple(_from_json(member) for member in stored.get("extra", ())),
        next_retry_delay_us=stored.get("next_retry_delay_us"),
        attributes=stored.get("attributes", {}),
    )


def _without_details(failure: Failure, note: str) -> Failure:
    return replace(
        failure,
        details=None if failure.details is None else [note],
        cause=failure.cause and _without_details(failure.cause, note),
        extra=tuple(_without_details(member, note) for member in failure.extra),
    )


def _without_tracebacks(failure: Failure) -> Failure:
    return replace(
        failure,
        traceback=None,
        message=failure.message[:1_000],
        cause=failure.cause and _without_tracebacks(failure.cause),
        extra=tuple(_without_tracebacks(member) for member in failure.extra),
    )
