"""Between rows and records: the fields of a record are the columns of its table.

A habit of the query modules: rows to be locked and changed in one statement are chosen by a CTE, which
PostgreSQL never evaluates twice when it locks, *nested* in the IN: SQLite's driver counts the rows of a
statement only when it begins with UPDATE or DELETE.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, CursorResult, Table, bindparam, literal

R = TypeVar("R")

BATCH = 500
"""Most values in one IN list: SQLite bounds the parameters of a statement."""


def columns_of(
    table: Table, record: type[Any], *, without: Mapping[str, Any] | None = None
) -> list[ColumnElement[Any]]:
    """Returns the columns that make up a record.

    Args:
        table: The table.
        record: A dataclass.
        without: Fields not to be read, with the values that take their place.
    """
    replaced = without or {}
    return [
        literal(replaced[field.name], table.c[field.name].type).label(field.name)
        if field.name in replaced
        else table.c[field.name]
        for field in fields(record)
    ]


def records(record: type[R], result: CursorResult[Any]) -> list[R]:
    """Makes a record of each row."""
    return [record(**row) for row in result.mappings()]


def record_or_none(record: type[R], result: CursorResult[Any]) -> R | None:
    """Makes a record of the first row, if there is one."""
    row = result.mappings().first()
    return None if row is None else record(**row)


def values_of(record: Any) -> dict[str, Any]:
    """Returns a record's fields as column values."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def meets(table: Table, expect: Mapping[str, Any] | None) -> list[ColumnElement[bool]]:
    """Returns conditions: the column has that value, is NULL for None, or is one of several values."""
    return [_condition(table.c[name], value) for name, value in (expect or {}).items()]


def _condition(column: ColumnElement[Any], value: Any) -> ColumnElement[bool]:
    if value is None:
        return column.is_(None)
    if isinstance(value, (tuple, list, set, frozenset)):
        return column.in_(list(value))
    return column.__eq__(value)


def batches(items: Collection[Any]) -> list[Sequence[Any]]:
    """Cuts a collection into pieces that fit an IN list."""
    listed = list(items)
    return [listed[start : start + BATCH] for start in range(0, len(listed), BATCH)]


def key(table: Table, *names: str) -> list[ColumnElement[bool]]:
    """Returns conditions on key columns, whose values are given as parameters ``key_<name>``."""
    return [table.c[name] == bindparam(f"key_{name}") for name in names]
