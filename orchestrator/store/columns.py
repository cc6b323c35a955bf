"""Column types: how values of the records are kept in both databases.

Identifiers are compared byte by byte in both, whatever the database's locale is. JSON is kept as ASCII
text, so that NUL characters and lone surrogates pass through databases that refuse them in text.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

Name = Text().with_variant(Text(collation="C"), "postgresql")
"""An identifier or a name: text in byte order."""

Instant = BigInteger
"""Microseconds since the Unix epoch, or on the sweep's clock."""

# SQLite numbers rows by itself only in a column whose type is exactly INTEGER.
RowId = BigInteger().with_variant(Integer, "sqlite")
"""A number given by the database, growing with each insert."""


class EnumText(TypeDecorator[StrEnum]):
    """A string enum kept as its value.

    Args:
        enum: The enum that values are read back as.
    """

    impl = Text
    cache_ok = True

    def __init__(self, enum: type[StrEnum]) -> None:
        super().__init__()
        self.enum = enum

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return Text(collation="C") if dialect.name == "postgresql" else Text()

    def process_bind_param(self, value: StrEnum | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else self.enum(value).value

    def process_result_value(self, value: str | None, dialect: Dialect) -> StrEnum | None:  # noqa: ARG002
        return None if value is None else self.enum(value)


class JsonText(TypeDecorator[Any]):
    """A JSON value kept as compact ASCII text; None is NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else json.dumps(value, separators=(",", ":"), allow_nan=False)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else json.loads(value)


class TupleText(JsonText):
    """A tuple, or a tuple of tuples, kept as JSON text."""

    cache_ok = True

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return _as_tuple(super().process_result_value(value, dialect))


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(item) for item in value) if isinstance(value, list) else value
