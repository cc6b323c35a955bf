"""Tells whether a value that went through JSON came back as what it was.

Types are compared, not contents: contents are pydantic's business, and a field may be normalised by a
validator or left out on purpose. JSON, though, has few types, so ``Decimal | str`` or two classes with the
same fields read back as the wrong one without any error: that is what is looked for here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from itertools import zip_longest
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from orchestrator.model.plain import attribute, item, type_name

Difference = tuple[str, str]
"""A path and what is wrong there."""

_SIMPLE = frozenset({str, int, float, bool, type(None), bytes, Decimal, datetime, date, UUID})
_SEQUENCES = (list, tuple, deque)
_SETS = (set, frozenset)
_MISSING = object()


def difference(sent: Any, read: Any, path: str) -> Difference | None:
    """Returns the first place where the types differ, or None.

    A subclass may come back as the class that was declared, an int as a float of the same value, an Enum
    member as its plain value, a tuple as the list that was declared.

    Args:
        sent: The value that was given.
        read: What its JSON reads back as.
        path: The place of both.
    """
    if type(sent) is type(read) and type(sent) in _SIMPLE:
        return None
    if isinstance(sent, _SEQUENCES) and isinstance(read, _SEQUENCES):
        return _first_of((item(path, index), a, b) for index, (a, b) in enumerate(zip_longest(sent, read)))
    if isinstance(sent, Mapping) and isinstance(read, Mapping):
        return _mappings(sent, read, path)
    if isinstance(sent, _SETS) and isinstance(read, _SETS):
        lost = {type(member) for member in sent} - {type(member) for member in read}
        return (path, _message(next(iter(lost)).__name__, read)) if lost and not _similar(sent, read) else None
    if not _same_kind(sent, read):
        return path, _message(type_name(sent), read)
    kind: Any = type(read)
    names = _field_names(kind)
    return _attributes(sent, read, names, path) if names else None


@lru_cache(maxsize=4096)
def _field_names(kind: Any) -> tuple[str, ...]:
    if issubclass(kind, BaseModel):
        return tuple(name for name, field in kind.model_fields.items() if not field.exclude)
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind) if field.init)
    return ()


def _first_of(places: Any) -> Difference | None:
    for path, sent, read in places:
        if found := difference(sent, read, path):
            return found
    return None


def _mappings(sent: Mapping[Any, Any], read: Mapping[Any, Any], path: str) -> Difference | None:
    for key, again in zip(sent, read, strict=False):
        if not _same_kind(key, again):
            return path, f"its key {ascii(key)[:40]} would be read back as {type_name(again)}, not {type_name(key)}"
    return _first_of((attribute(path, key), a, b) for (key, a), b in zip(sent.items(), read.values(), strict=False))


def _attributes(sent: Any, read: Any, names: tuple[str, ...], path: str) -> Difference | None:
    for name in names:
        a, b = getattr(sent, name, _MISSING), getattr(read, name, _MISSING)
        if type(a) is type(b) and type(a) in _SIMPLE:
            continue
        if a is not _MISSING and b is not _MISSING and (found := difference(a, b, attribute(path, name))):
            return found
    return None


def _same_kind(sent: Any, read: Any) -> bool:
    if type(sent) is type(read):
        return True
    if isinstance(sent, bool) or isinstance(read, bool):
        return False
    if isinstance(sent, int) and isinstance(read, float):
        return sent == read
    if isinstance(sent, datetime) and isinstance(read, date):
        return isinstance(read, datetime)
    if isinstance(sent, Enum) and not isinstance(read, Enum):
        return isinstance(sent, (str, int)) and isinstance(sent, type(read))
    return isinstance(sent, type(read)) or _origin(sent) is _origin(read)


def _origin(value: Any) -> Any:
    """The generic class behind a parametrised model; else the class itself."""
    metadata: Any = getattr(type(value), "__pydantic_generic_metadata__", None)
    return (metadata and metadata["origin"]) or type(value)


def _similar(sent: Any, read: Any) -> bool:
    return len(sent) == len(read) and all(any(_same_kind(a, b) for b in read) for a in sent)


def _message(sent: str, read: Any) -> str:
    return (
        f"would be read back as {type_name(read)}, not {sent}: its type hint is ambiguous in JSON; "
        "declare one type, or a union with a discriminator"
    )
