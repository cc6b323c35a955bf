"""JSON text as this library writes it: exact integers, no NaN, UTF-8, bounded depth.

The standard library's encoder does the work; what it gets wrong is put right here: integers of more digits
than the interpreter converts, and nesting that one stack depth could write and another could not read.
"""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from decimal import Decimal
from typing import Any

MAX_DEPTH = 128
"""Levels of lists and objects that a payload may have; every reader involved manages this many."""


def _refuse_object(value: object) -> None:
    msg = f"{type(value).__name__} is not JSON"
    raise TypeError(msg)


def _writer(*, sort_keys: bool) -> Callable[[Any], str]:
    """A bare C encoder: JSONEncoder makes one per call, which takes longer than to encode a small value."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys, check_circular=False
        ).encode
    quote = json.encoder.encode_basestring
    # No markers: a value that contains itself ends in RecursionError.
    encode: Any = make(None, _refuse_object, quote, None, ":", ",", sort_keys, False, False)
    return lambda value: "".join(encode(value, 0))


_WRITE = _writer(sort_keys=False)
_WRITE_SORTED = _writer(sort_keys=True)


def _refuse_constant(token: str) -> None:
    msg = f"{token} is not JSON"
    raise ValueError(msg)


def _int_of(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        # Decimal converts exactly and has no digit limit.
        return int(Decimal(digits))


_READ = json.JSONDecoder(parse_constant=_refuse_constant).decode
_READ_HUGE = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_int_of).decode


class TooDeep(ValueError):
    """The value has more than ``MAX_DEPTH`` levels."""


def write(value: Any, *, canonical: bool = False) -> bytes:
    """Returns plain JSON data as UTF-8 text.

    Args:
        value: None, bool, int, finite float, str, list, tuple, or dict with string keys.
        canonical: Sort the keys of objects; else they keep their order.

    Raises:
        ValueError: NaN or infinity, text that is not UTF-8, or more than ``MAX_DEPTH`` levels.
        TypeError: Not plain JSON data.
        RecursionError: Far too deep, or a value that contains itself.
    """
    encode = _WRITE_SORTED if canonical else _WRITE
    try:
        text = encode(value)
    except ValueError as error:
        if not _is_digit_limit(error):
            raise
        text = _write_huge(value, canonical=canonical)
    _check_depth(text, value)
    return text.encode()


def read(body: bytes) -> Any:
    """Returns the plain data of a JSON text.

    Raises:
        ValueError: Not JSON, or not UTF-8.
        RecursionError: Far too deep.
    """
    text = body.decode()
    try:
        return _READ(text)
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        if not _is_digit_limit(error):
            raise
        return _READ_HUGE(text)


def _is_digit_limit(error: ValueError) -> bool:
    return "integer string conversion" in str(error)


def _check_depth(text: str, value: Any) -> None:
    # There can't be more levels than brackets, so small values never pay for the walk.
    if len(text) <= 2 * MAX_DEPTH or text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, (list, dict, tuple))
        ]
        if not level:
            return
    msg = f"more than {MAX_DEPTH} levels"
    raise TooDeep(msg)


def _write_huge(value: Any, *, canonical: bool) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(Decimal(value))
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_write_huge(item, canonical=canonical) for item in value) + "]"
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            msg = "keys must be text"
            raise TypeError(msg)
        keys = sorted(value) if canonical else list(value)
        return "{" + ",".join(f"{_WRITE(key)}:{_write_huge(value[key], canonical=canonical)}" for key in keys) + "}"
    return _WRITE(value)
