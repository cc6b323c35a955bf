"""Between rows and records: the fields of a record are the columns of its table.

A habit of the query modules: rows to be locked and changed in one statement are chosen by a CTE, which
PostgreSQL never evaluates twice when it locks, *nested* in the IN: SQLite's driver counts the rows of a
statement only when it begins with UPDATE or DELETE.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, CursorResult, Table, Update, bindparam, literal, update

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


def meets(table: Table, expect: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """Returns conditions: the column has that value, is NULL for None, or is one of several values.

    The values are given as parameters; see :func:`expected`.
    """
    return [_condition(table.c[name], value) for name, value in expect.items()]


def expected(expect: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters of :func:`meets`."""
    return {f"expect_{name}": _plain(value) for name, value in expect.items() if value is not None}


def _condition(column: ColumnElement[Any], value: Any) -> ColumnElement[bool]:
    name = f"expect_{column.key}"
    if value is None:
        return column.is_(None)
    if _is_several(value):
        return column.in_(bindparam(name, expanding=True))
    return column.__eq__(bindparam(name))


def _plain(value: Any) -> Any:
    return list(value) if _is_several(value) else value


def _is_several(value: Any) -> bool:
    return isinstance(value, (tuple, list, set, frozenset))


class Updates:
    """Updates of one row by its key, with the statements built once.

    Args:
        table: The table.
        key: Names of its key columns.
        computed: Columns that are set by an expression whenever another column is set: by that other
            column, the column to be set and the expression, which may use parameter ``new_<other>``.
    """

    def __init__(self, table: Table, *key: str, computed: Mapping[str, tuple[str, Any]] | None = None) -> None:
        self._table = table
        self._key = key
        self._computed = dict(computed or {})
        self._built: dict[tuple[Any, ...], Update] = {}

    def execute(
        self, conn: Connection, key: Sequence[Any], values: Mapping[str, Any], expect: Mapping[str, Any] | None
    ) -> bool:
        """Sets columns of the row; False when there is none or it is not as expected."""
        parameters = dict(zip((f"key_{name}" for name in self._key), key, strict=True))
        parameters |= values
        parameters |= {f"new_{name}": values[name] for name in self._computed if name in values}
        parameters |= expected(expect or {})
        return conn.execute(self._statement(values, expect or {}), parameters).rowcount == 1

    def _statement(self, values: Mapping[str, Any], expect: Mapping[str, Any]) -> Update:
        # Building one costs as much as executing it, and there are only a handful of shapes.
        computed = tuple(name for name in self._computed if name in values)
        shape = (computed, *((name, value is None, _is_several(value)) for name, value in expect.items()))
        if (found := self._built.get(shape)) is not None:
            return found
        statement = update(self._table).where(*key(self._table, *self._key), *meets(self._table, expect))
        if computed:
            statement = statement.values(dict(self._computed[name] for name in computed))
        return self._built.setdefault(shape, statement)


def batches(items: Collection[Any]) -> list[Sequence[Any]]:
    """Cuts a collection into pieces that fit an IN list."""
    listed = list(items)
    return [listed[start : start + BATCH] for start in range(0, len(listed), BATCH)]


def key(table: Table, *names: str) -> list[ColumnElement[bool]]:
    """Returns conditions on key columns, whose values are given as parameters ``key_<name>``."""
    return [table.c[name] == bindparam(f"key_{name}") for name in names]
