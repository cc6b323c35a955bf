"""Tells whether a value that went through JSON came back as what it was.

Types are compared, not contents: contents are pydantic's business, and a field may be normalised by a
validator or left out on purpose. JSON, though, has few types, so ``Decimal | str`` or two classes with the
same fields read back as the wrong one without any error: that is what is looked for here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
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


class Comparison:
    """Compares a value with what its JSON reads back as.

    Args:
        unhinted: Ids of values inside that stand where there is no type hint: they take the documented form.
    """

    def __init__(self, unhinted: Collection[int] = ()) -> None:
        self._unhinted = unhinted

    def difference(self, sent: Any, read: Any, path: str) -> Difference | None:
        """Returns the first place where the types differ, or None.

        A subclass may come back as the class that was declared, an int as a float of the same value, an Enum
        member as its plain value, a tuple as the list that was declared.

        Args:
            sent: The value that was given.
            read: What its JSON reads back as.
            path: The place of both.
        """
        if (type(sent) is type(read) and type(sent) in _SIMPLE) or id(sent) in self._unhinted:
            return None
        if isinstance(sent, _SEQUENCES) and isinstance(read, _SEQUENCES):
            return self._sequences(sent, read, path)
        if isinstance(sent, Mapping) and isinstance(read, Mapping):
            return self._mappings(sent, read, path)
        if isinstance(sent, _SETS) and isinstance(read, _SETS):
            return _sets(sent, read, path)
        if not _same_kind(sent, read):
            return path, _message(sent, read)
        kind: Any = type(read)
        names = _field_names(kind)
        return self._attributes(sent, read, names, path) if names else None

    def _sequences(self, sent: Sequence[Any], read: Sequence[Any], path: str) -> Difference | None:
        if _all_simple(sent, read):
            return None
        for index, (a, b) in enumerate(zip_longest(sent, read)):
            if found := self.difference(a, b, item(path, index)):
                return found
        return None

    def _mappings(self, sent: Mapping[Any, Any], read: Mapping[Any, Any], path: str) -> Difference | None:
        if _all_simple(sent, read) and _all_simple(sent.values(), read.values()):
            return None
        for (key, a), (again, b) in zip(sent.items(), read.items(), strict=False):
            if not _same_kind(key, again):
                return path, f"its key {ascii(key)[:40]} would be read back as {type_name(again)}, not {type_name(key)}"
            if found := self.difference(a, b, attribute(path, key)):
                return found
        return None

    def _attributes(self, sent: Any, read: Any, names: tuple[str, ...], path: str) -> Difference | None:
        for name in names:
            a, b = getattr(sent, name, _MISSING), getattr(read, name, _MISSING)
            if a is _MISSING or b is _MISSING or (type(a) is type(b) and type(a) in _SIMPLE):
                continue
            if found := self.difference(a, b, attribute(path, name)):
                return found
        return None


def _all_simple(sent: Iterable[Any], read: Iterable[Any]) -> bool:
    """Members all of one simple type: the common case, without a look at each."""
    kinds = set(map(type, sent))
    return len(kinds) <= 1 and kinds <= _SIMPLE and kinds == set(map(type, read))


@lru_cache(maxsize=4096)
def _field_names(kind: Any) -> tuple[str, ...]:
    if issubclass(kind, BaseModel):
        return tuple(name for name, field in kind.model_fields.items() if not field.exclude)
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind) if field.init)
    return ()


def _sets(sent: Any, read: Any, path: str) -> Difference | None:
    for member in sent:
        if not any(_same_kind(member, again) for again in read):
            return path, _message(member, next(iter(read), None))
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


def _message(sent: object, read: object) -> str:
    if isinstance(sent, bool):
        return f"give {type_name(read)}, not bool"
    return (
        f"would be read back as {type_name(read)}, not {type_name(sent)}: its type hint is ambiguous in JSON; "
        "declare one type, or a union with a discriminator"
    )
