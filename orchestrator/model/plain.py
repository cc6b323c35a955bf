"""Values without a type hint: the documented JSON form, and where in a value the trouble sits.

JSON data stays as it is. Beyond it:

==============================================  ====================================================
tuple, list and deque                           array
set, frozenset                                  array, sorted, so that the same set is the same text
dict                                            object; int, float, bool and None keys as JSON writes them
dataclass, pydantic model                       object, as if their class had been the hint
Enum member                                     its value; its name if JSON does not know all values
bytes, bytearray, memoryview                    base64 (URL-safe alphabet, padded)
datetime, date, time, timedelta                 ISO 8601
Decimal, UUID, Path, Fraction, complex, IP      their text
==============================================  ====================================================

Everything else is refused, with the path of the value: guessing a form would change it silently.
"""

from __future__ import annotations

import base64
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from pathlib import PurePath
from typing import Any, NoReturn
from uuid import UUID

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import to_jsonable_python

from orchestrator.errors import PayloadError
from orchestrator.model import jsontext

Structured = Callable[[object, str], Any]
"""Turns a dataclass or model instance into plain data: ``(value, path)``."""

_AS_TEXT = (datetime, date, time, timedelta, Decimal, UUID, PurePath, Fraction, complex, IPv4Address, IPv6Address)
_SECRETS = (SecretStr, SecretBytes)


def attribute(path: str, name: object) -> str:
    """Returns the path of a field, or of the value under a key."""
    if isinstance(name, str) and name.isidentifier():
        return f"{path}.{name}"
    shown = ascii(name)[:40] if isinstance(name, (str, float, bool, type(None), bytes, date, UUID)) else type_name(name)
    return f"{path}[{name if type(name) is int and name.bit_length() < 200 else shown}]"


def item(path: str, index: int) -> str:
    """Returns the path of a list's member."""
    return f"{path}[{index}]"


def shortened(path: str) -> str:
    """Returns a path fit for a message, whatever its length and characters."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= 200 else f"{text[:120]}…{text[-60:]}"


def refused(path: str, reason: str) -> PayloadError:
    """Returns the error for the value at a path."""
    return PayloadError(shortened(path), reason)


def type_name(value: object) -> str:
    """Returns the name of a value's type; for what is not built in, with its module."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def sort_key(plain: Any) -> bytes:
    """Orders plain values by their canonical text: the same order in every process."""
    return jsontext.write(plain, canonical=True)


def has_json_values(kind: type[Enum]) -> bool:
    """Tells whether the members of an Enum are written by their values."""
    return all(type(member.value) in (str, int, bool, float) for member in kind)


def enum_text(member: Enum) -> Any:
    """Returns what stands for an Enum member in JSON."""
    return member.value if has_json_values(type(member)) else member.name


def key_text(key: object, path: str) -> str:
    """Returns the text that stands for a dict key in JSON.

    Raises:
        PayloadError: The key has no such text.
    """
    if isinstance(key, Enum):
        key = enum_text(key)
    if isinstance(key, str):
        return check_text(str.__str__(key), attribute(path, key))
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, (int, float)):
        check_number(key, path)
        return jsontext.write(key).decode()
    if isinstance(key, _AS_TEXT):
        return str(to_jsonable_python(key))
    raise refused(path, f"a key of type {type_name(key)} can't be stored; use text, or a list of pairs")


def check_text(value: str, path: str) -> str:
    """Returns the text unchanged.

    Raises:
        PayloadError: It holds a lone surrogate.
    """
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise refused(
            path,
            f"holds a lone surrogate (U+{ord(value[error.start]):04X} at position {error.start}), which is no valid "
            "text; clean it, for example with value.encode('utf-8', 'backslashreplace').decode()",
        ) from None
    return value


def check_number(value: float | Decimal, path: str) -> None:
    """Refuses NaN and the infinities.

    Raises:
        PayloadError: It is one of them.
    """
    finite = value.is_finite() if isinstance(value, Decimal) else isinstance(value, int) or math.isfinite(value)
    if not finite:
        raise refused(path, f"{value} can't be stored: JSON has no such number; use None or text instead")


def to_plain(value: object, path: str, structured: Structured) -> Any:
    """Returns the documented JSON form of a value.

    Args:
        value: Anything.
        path: Its place, for errors.
        structured: Turns dataclass and model instances into plain data.

    Raises:
        PayloadError: It holds something that has no such form; its path is named.
    """
    return _Lowering(structured).lower(value, path)


def find_fault(value: object, path: str, *, strangers: bool = False, secrets: bool = False) -> None:
    """Looks into a value for what no type hint can store, and names its place.

    Args:
        value: Anything, also dataclass and model instances.
        path: Its place.
        strangers: Also take objects of unknown types as a fault.
        secrets: Take pydantic secrets as a fault: their JSON form is a mask.

    Raises:
        PayloadError: Something was found. Nothing is raised otherwise.
    """
    _Search(strangers=strangers, secrets=secrets).visit(value, path)


def explain(value: object, path: str, error: Exception) -> NoReturn:
    """Raises the error for a value whose plain form could not be written as JSON text.

    Raises:
        PayloadError: Always; the place is named if it can be found.
    """
    find_fault(value, path)
    if isinstance(error, (jsontext.TooDeep, RecursionError)):
        raise refused(path, f"nested more than {jsontext.MAX_DEPTH} levels deep; make it flatter") from error
    raise refused(path, f"can't be stored as JSON: {error}") from error


class _Walk:
    """Keeps count of the containers around the present value, so that cycles and depth are noticed."""

    def __init__(self) -> None:
        self._around: list[int] = []

    def enter(self, value: object, path: str) -> None:
        if id(value) in self._around:
            raise refused(path, f"a {type_name(value)} that contains itself can't be stored")
        if len(self._around) >= jsontext.MAX_DEPTH:
            raise refused(path, f"nested more than {jsontext.MAX_DEPTH} levels deep; make it flatter")
        self._around.append(id(value))

    def leave(self) -> None:
        self._around.pop()


class _Lowering(_Walk):
    def __init__(self, structured: Structured) -> None:
        super().__init__()
        self._structured = structured

    def lower(self, value: object, path: str) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return self.lower(enum_text(value), path)
        if isinstance(value, str):
            return check_text(str.__str__(value), path)
        if isinstance(value, (int, float)):
            check_number(value, path)
            return int(value) if isinstance(value, int) else float(value)
        return self._lower_known(value, path)

    def _lower_known(self, value: object, path: str) -> Any:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return base64.urlsafe_b64encode(bytes(value)).decode("ascii")
        if isinstance(value, Decimal):
            check_number(value, path)
        if isinstance(value, _AS_TEXT):
            return str(value) if isinstance(value, Fraction) else to_jsonable_python(value)
        return self._lower_container(value, path)

    def _lower_container(self, value: object, path: str) -> Any:
        self.enter(value, path)
        if isinstance(value, (list, tuple, deque)):
            plain: Any = [self.lower(member, item(path, index)) for index, member in enumerate(value)]
        elif isinstance(value, Mapping):
            plain = self._lower_mapping(value, path)
        elif isinstance(value, (set, frozenset)):
            plain = sorted((self.lower(member, f"{path}{{}}") for member in value), key=sort_key)
        elif isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
            plain = self._structured(value, path)
        else:
            raise refused(
                path,
                f"an object of type {type_name(value)} can't be stored as JSON; "
                "pass plain data, a dataclass or a pydantic model",
            )
        self.leave()
        return plain

    def _lower_mapping(self, value: Mapping[Any, Any], path: str) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key, member in value.items():
            text = key_text(key, path)
            if text in plain:
                raise refused(path, f"two keys become the same JSON key {text!a}; use keys of one type")
            plain[text] = self.lower(member, attribute(path, text))
        return plain


class _Search(_Walk):
    def __init__(self, *, strangers: bool, secrets: bool) -> None:
        super().__init__()
        self._strangers = strangers
        self._secrets = secrets

    def visit(self, value: object, path: str) -> None:
        if isinstance(value, Enum):
            self.visit(value.value, path)
        elif value is None or isinstance(value, (bool, int, bytes, bytearray)):
            pass
        elif isinstance(value, str):
            check_text(str.__str__(value), path)
        elif isinstance(value, (float, Decimal)):
            check_number(value, path)
        elif isinstance(value, _SECRETS):
            if self._secrets:
                raise refused(path, "a secret would be stored as a mask of asterisks; pass a reference to it instead")
        elif not isinstance(value, _AS_TEXT):
            self._visit_container(value, path)

    def _visit_container(self, value: object, path: str) -> None:
        self.enter(value, path)
        if isinstance(value, Mapping):
            for key, member in value.items():
                self.visit(key, path)
                self.visit(member, attribute(path, key))
        elif isinstance(value, (list, tuple, deque)):
            for index, member in enumerate(value):
                self.visit(member, item(path, index))
        elif isinstance(value, (set, frozenset)):
            for member in value:
                self.visit(member, f"{path}{{}}")
        elif isinstance(value, BaseModel):
            for name in (*type(value).model_fields, *(value.model_extra or ())):
                self.visit(getattr(value, name, None), attribute(path, name))
        elif is_dataclass(value) and not isinstance(value, type):
            for field in fields(value):
                self.visit(getattr(value, field.name, None), attribute(path, field.name))
        elif self._strangers:
            raise refused(
                path,
                f"an object of type {type_name(value)} can't be stored as JSON; "
                "pass plain data, a dataclass or a pydantic model",
            )
        self.leave()
