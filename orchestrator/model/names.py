"""What the public calls accept: ids, names, durations, instants, choices.

Everything is checked at the border, before anything is read or stored, and an error names the argument as
the caller wrote it. Ids and names are kept byte-exact: what can't be kept is refused, never repaired.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from orchestrator.errors import InvalidArgument
from orchestrator.types import SECOND, Micros, to_micros

_T = TypeVar("_T")

ID_LIMIT = 255
"""Longest id or name, in UTF-8 bytes."""

LONGEST: Micros = 100 * 365 * 86400 * SECOND
"""Longest duration that is accepted: one hundred years."""

TASK_ID_LIMIT = 155
"""Longest Celery task id, in bytes: the width of its column in Celery's database result back end."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_FIRST = to_micros(datetime.min.replace(tzinfo=UTC) - _EPOCH)
_LAST = to_micros(datetime.max.replace(tzinfo=UTC) - _EPOCH)
_UNSAFE = re.compile(rb"[^A-Za-z0-9._/-]")


def check_id(value: object, argument: str) -> str:
    """Returns an id (workflow, run, signal, update or request id) unchanged.

    Slashes, quotes, inner spaces, emoji and right-to-left text are all fine.

    Raises:
        InvalidArgument: Not text, empty, blank edges, control characters, a lone surrogate, or more than
            255 UTF-8 bytes.
    """
    return _check_label(value, argument)


def check_name(value: object, argument: str) -> str:
    """Returns a name (workflow type, activity, signal, query or queue) unchanged; same rules as an id.

    Raises:
        InvalidArgument: As ``check_id``.
    """
    return _check_label(value, argument)


def check_text(value: object, argument: str, limit_bytes: int) -> str:
    """Returns free text, such as a reason, unchanged; it may be empty and may hold line breaks and tabs.

    Args:
        value: What the caller gave.
        argument: Its name in the call.
        limit_bytes: Longest text, in UTF-8 bytes.

    Raises:
        InvalidArgument: Not text, another control character, a lone surrogate, or too long.
    """
    text = _check_str(value, argument)
    _check_characters(text, argument, allowed="\t\n\r")
    _check_bytes(text, argument, limit_bytes)
    return text


def check_duration(
    value: object, argument: str, *, allow_zero: bool = True, maximum: timedelta | None = None
) -> Micros:
    """Returns a duration in microseconds.

    Args:
        value: A timedelta, or a number of seconds as Celery takes them.
        argument: Its name in the call.
        allow_zero: False refuses zero.
        maximum: Longest accepted; never more than 100 years.

    Raises:
        InvalidArgument: Another type (a bool included), NaN, infinite, negative or too long.
    """
    micros = _duration(value, argument)
    if micros < 0:
        raise InvalidArgument(argument, f"a duration can't be negative; give zero or more, not {number_text(value)}")
    if micros == 0 and not allow_zero:
        raise InvalidArgument(argument, "give a duration above zero")
    limit = LONGEST if maximum is None else min(LONGEST, to_micros(maximum))
    if micros > limit:
        longest = "100 years" if limit == LONGEST else str(maximum)
        raise InvalidArgument(argument, f"a duration of at most {longest} is accepted, not {number_text(value)}")
    return micros


def _duration(value: object, argument: str) -> Micros:
    if isinstance(value, timedelta):
        return to_micros(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidArgument(argument, f"give a timedelta or a number of seconds, not {type(value).__name__}")
    if isinstance(value, int):
        return int(value) * SECOND
    if not math.isfinite(value):
        raise InvalidArgument(argument, f"give a finite number of seconds, not {value!r}")
    if abs(value) > LONGEST:
        # Seconds above the limit in microseconds are far above it in seconds: no overflow below.
        return LONGEST + 1 if value > 0 else -1
    micros = round(value * SECOND)
    # A wait that was asked for never turns into none.
    return micros if micros or not value else int(math.copysign(1, value))


def check_instant(value: object, argument: str) -> Micros:
    """Returns an instant in microseconds since the Unix epoch, UTC.

    Raises:
        InvalidArgument: Not a datetime, one without a time zone, or outside of the years 1 to 9999 in UTC.
    """
    if not isinstance(value, datetime):
        raise InvalidArgument(argument, f"give a datetime with a time zone, not {type(value).__name__}")
    try:
        offset = value.utcoffset()
    except Exception as error:
        raise InvalidArgument(argument, f"its time zone can't be read: {type(error).__name__}") from error
    if offset is None:
        raise InvalidArgument(
            argument, "a datetime without a time zone is ambiguous; write for example datetime.now(timezone.utc)"
        )
    micros = to_micros(value - _EPOCH)
    if not _FIRST <= micros <= _LAST:
        raise InvalidArgument(argument, "lies outside of the years 1 to 9999 in UTC; give a nearer instant")
    return micros


def check_flag(value: object, argument: str) -> bool:
    """Returns a flag.

    Raises:
        InvalidArgument: Not a bool: ``"false"`` from a form or an environment variable would count as true.
    """
    if isinstance(value, bool):
        return value
    raise InvalidArgument(argument, f"give True or False, not {type(value).__name__}")


def check_instance(value: object, argument: str, kind: type[_T], what: str) -> _T:
    """Returns an object of a class unchanged.

    Args:
        value: What the caller gave.
        argument: Its name in the call.
        kind: The class.
        what: What to give, in words.

    Raises:
        InvalidArgument: Of another class.
    """
    if isinstance(value, kind):
        return value
    raise InvalidArgument(argument, f"give {what}, not {type(value).__name__}")


def check_callable(value: _T, argument: str) -> _T:
    """Returns a function unchanged.

    Raises:
        InvalidArgument: It can't be called.
    """
    if callable(value):
        return value
    raise InvalidArgument(argument, f"give a function, not {type(value).__name__}")


def check_type(hint: Any, argument: str) -> Any:
    """Returns a type hint unchanged: a class, None, or what :mod:`typing` makes.

    Raises:
        InvalidArgument: It is a value, or the name of a type.
    """
    if hint is None or isinstance(hint, type) or type(hint).__module__ in ("typing", "typing_extensions", "types"):
        return hint
    what = "the name of one in quotes" if isinstance(hint, str) else f"a value of type {type(hint).__name__}"
    raise InvalidArgument(argument, f"give a type such as str or list[Order], not {what}")


def check_choice(value: object, argument: str, choices: Iterable[_T]) -> _T:
    """Returns the choice that equals the value; for a StrEnum its text will do.

    Raises:
        InvalidArgument: None of them.
    """
    known = list(choices)
    for choice in known:
        if type(value) in (str, type(choice)) and value == choice:
            return choice
    names = [str(choice) for choice in known]
    near = difflib.get_close_matches(str(value), names, n=1) if isinstance(value, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    given = _shown(value) if isinstance(value, str) else type(value).__name__
    raise InvalidArgument(argument, f"give one of {', '.join(map(repr, names))}, not {given}{hint}")


def check_int(value: object, argument: str, *, minimum: int | None = None, maximum: int | None = None) -> int:
    """Returns a whole number within the bounds, both included.

    Raises:
        InvalidArgument: Another type (a bool included), or out of bounds.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(argument, f"give a whole number, not {type(value).__name__}")
    if minimum is not None and value < minimum:
        raise InvalidArgument(argument, f"give at least {minimum}, not {_digits(value)}")
    if maximum is not None and value > maximum:
        raise InvalidArgument(argument, f"give at most {maximum}, not {_digits(value)}")
    return int(value)


def number_text(value: object) -> str:
    """Returns a number for a message, however large it is."""
    return _digits(value) if isinstance(value, int) else str(value)


def task_id_for(workflow_id: str, run_id: str, name: str, number: int, attempt: int) -> str:
    """Returns the Celery task id of one attempt, readable and never used twice.

    It reads ``<workflow id>/<end of the run id>/<activity>:<number>.<attempt>`` and holds only
    ``A-Z a-z 0-9 . _ : / -``, which Flower's links and every broker carry unchanged. Other characters
    stand as ``:`` and two hex digits per UTF-8 byte: the percent sign and ``#`` of a URL encoding would
    not survive a link. The *end* of the run id is taken because a UUIDv7 begins with its time: runs of one
    minute begin alike. What is too long is cut and told apart by a digest.

    Args:
        workflow_id: The caller's id; at most 80 bytes of its escaped form are kept.
        run_id: Its last 12 characters are kept.
        name: Name of the activity.
        number: Number of the activity in its run, from 1.
        attempt: Attempt, from 1.
    """
    head = f"{_fitted(workflow_id, 80)}/{_escaped(run_id)[-12:]}/"
    tail = f":{number}.{attempt}"
    return head + _fitted(name.replace("/", "."), TASK_ID_LIMIT - len(head) - len(tail)) + tail


def _escaped(text: str) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    return _UNSAFE.sub(lambda found: b":%02X" % found.group()[0], raw).decode("ascii")


def _fitted(text: str, room: int) -> str:
    safe = _escaped(text)
    if len(safe) <= room:
        return safe
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    # A cut escape would read as another one.
    kept = re.sub(r":[0-9A-F]?$", "", safe[: room - len(digest) - 1])
    return f"{kept}-{digest}"


def _check_label(value: object, argument: str) -> str:
    text = _check_str(value, argument)
    if not text:
        raise InvalidArgument(argument, "must not be empty")
    _check_characters(text, argument, allowed="")
    if text != text.strip():
        raise InvalidArgument(argument, f"must not begin or end with a blank: {_shown(text)}")
    _check_bytes(text, argument, ID_LIMIT)
    return text


def _check_str(value: object, argument: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(argument, f"give text (str), not {type(value).__name__}")
    # A StrEnum member stands for its text.
    return str.__str__(value)


def _check_characters(text: str, argument: str, *, allowed: str) -> None:
    if text.isprintable():
        return
    for position, character in enumerate(text):
        category = unicodedata.category(character)
        if category == "Cs":
            raise InvalidArgument(
                argument, f"holds a lone surrogate (U+{ord(character):04X}) at position {position}; clean the text"
            )
        if category == "Cc" and character not in allowed:
            raise InvalidArgument(
                argument, f"holds a control character (U+{ord(character):04X}) at position {position}; remove it"
            )


def _check_bytes(text: str, argument: str, limit: int) -> None:
    size = len(text.encode())
    if size > limit:
        raise InvalidArgument(argument, f"is {size} bytes long in UTF-8; at most {limit} are accepted")


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:60] + "…")


def _digits(value: int) -> str:
    return str(value) if value.bit_length() < 200 else f"a number of {value.bit_length()} bits"
