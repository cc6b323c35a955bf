"""Adjusts a pydantic core schema so that what it writes, it reads back: the same in every process.

A model's own configuration is made for its API: bytes as UTF-8, extra fields forbidden, short time stamps.
Storage needs other rules, for the model and for everything nested in it, without touching the user's classes.
So the schema is copied and these nodes are changed:

- bytes are base64 unless the class says otherwise; times and durations keep their microseconds;
- fields that the code no longer knows are ignored, so that old rows still decode;
- sets are written sorted; ``Any`` is written by the documented form (``orchestrator.model.plain``);
- Enum members whose values JSON does not know (a tuple, a date) are written by name;
- dict keys that would become one JSON key are refused; a None key stands as ``null``;
- ``Iterable`` is read as a list, bytearray as bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, cast

from pydantic_core import CoreSchema, core_schema

from orchestrator.model.plain import check_number, enum_text, has_json_values, key_text, refused, sort_key

_OPAQUE = frozenset({"serialization", "metadata", "default", "expected", "members", "cls", "computed_fields"})
_DOUBTFUL = frozenset({"model", "dataclass", "union", "int", "float"})
_OBJECTS = frozenset({"model", "dataclass", "typed-dict", "named-tuple"})
_DICTS = frozenset({"dict", "ordered-dict", "counter"})

STORAGE_CONFIG = core_schema.CoreConfig(
    ser_json_bytes="base64", val_json_bytes="base64", ser_json_timedelta="iso8601", ser_json_temporal="iso8601"
)
"""Configuration of everything that has none of its own."""


class Adjusted:
    """A schema made fit for storage.

    Args:
        schema: As pydantic made it; it is not changed.
        plain: Turns a value without a hint into plain data.

    Attributes:
        schema: The adjusted copy.
        doubtful: JSON may read back as another type than was written: numbers (pydantic writes ``True`` under
            an int as 1), classes or unions are inside.
        by_alias: Fields may be read by their alias too; False when an alias is the name of another field.
    """

    def __init__(self, schema: CoreSchema, plain: Callable[[Any], Any]) -> None:
        self.doubtful = False
        self.by_alias = True
        self._plain = plain
        self.schema: CoreSchema = self._copy(schema)

    def _copy(self, node: Any) -> Any:
        if isinstance(node, (list, tuple)):
            return type(node)(self._copy(member) for member in node)
        if not isinstance(node, dict):
            return node
        # In these two the keys are names from the user's code, not parts of a schema.
        new = {
            key: value
            if key in _OPAQUE
            else {name: self._copy(member) for name, member in value.items()}
            if key in ("fields", "choices") and isinstance(value, dict)
            else self._copy(value)
            for key, value in node.items()
        }
        kind = new.get("type")
        return self._adjusted(kind, new) if isinstance(kind, str) else new

    def _adjusted(self, kind: str, node: dict[str, Any]) -> dict[str, Any]:
        if kind in _DOUBTFUL:
            self.doubtful = True
        if kind in _OBJECTS:
            node["config"] = _storage_config(node.get("config", {}))
        if node.get("extra_behavior") == "forbid":
            node["extra_behavior"] = "ignore"
        if "fields" in node:
            self._notice_aliases(node["fields"])
        if kind == "generator":
            return _as_list(node)
        if kind == "enum" and not has_json_values(node["cls"]):
            return _enum_by_name(node["cls"])
        if kind == "is-instance" and node["cls"] is bytearray:
            return _bytearray_schema()
        if "serialization" in node:
            return node
        if kind == "any":
            node["serialization"] = core_schema.plain_serializer_function_ser_schema(self._plain)
        elif kind in ("set", "frozenset"):
            node["serialization"] = _wrapped(_sorted_set, node)
        elif kind in _DICTS:
            self._adjust_keys(node)
        return node

    def _adjust_keys(self, node: dict[str, Any]) -> None:
        keys: Any = node.get("keys_schema") or core_schema.any_schema()
        kind = keys.get("type")
        if kind == "str":
            return
        if kind == "any":
            keys = core_schema.any_schema(serialization=core_schema.plain_serializer_function_ser_schema(_any_key))
        elif kind == "nullable":
            self.doubtful = True
            keys = core_schema.no_info_before_validator_function(
                _null_key, keys, serialization=_wrapped(_key_or_null, keys)
            )
        node["keys_schema"] = keys
        node["serialization"] = _wrapped(_distinct_keys, node)

    def _notice_aliases(self, fields: Any) -> None:
        named = fields.items() if isinstance(fields, dict) else ((f.get("name"), f) for f in _dicts(fields))
        pairs = [(name, field) for name, field in named if isinstance(field, dict)]
        names = {name for name, _ in pairs}
        for name, field in pairs:
            if (names - {name}) & _aliases(field.get("validation_alias")):
                self.by_alias = False


def _dicts(values: Iterable[Any]) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _aliases(alias: Any) -> set[Any]:
    if isinstance(alias, str):
        return {alias}
    # A list is one path or several; a path begins with a key.
    found: set[Any] = set()
    for part in alias or ():
        found |= {part} if isinstance(part, str) else {part[0]} if part else set()
    return found


def _storage_config(config: Mapping[str, Any]) -> dict[str, Any]:
    form = config.get("ser_json_bytes") or config.get("val_json_bytes") or "base64"
    new = {"ser_json_bytes": form, "val_json_bytes": form, **config}
    new |= {"ser_json_timedelta": "iso8601", "ser_json_temporal": "iso8601"}
    if new.get("extra_fields_behavior") == "forbid":
        new["extra_fields_behavior"] = "ignore"
    return new


def _wrapped(function: Callable[[Any, Any], Any], node: dict[str, Any]) -> core_schema.WrapSerializerFunctionSerSchema:
    return core_schema.wrap_serializer_function_ser_schema(function, schema=cast("CoreSchema", dict(node)))


def _sorted_set(value: Any, write: Callable[[Any], Any]) -> Any:
    plain = write(value)
    return sorted(plain, key=sort_key) if isinstance(plain, (list, set, frozenset)) else plain


def _as_list(node: dict[str, Any]) -> dict[str, Any]:
    items = node.get("items_schema", core_schema.any_schema())
    new: dict[str, Any] = {"type": "list", "items_schema": items}
    new["serialization"] = _wrapped(_list_of, new)
    return new


def _list_of(value: Any, write: Callable[[Any], Any]) -> Any:
    return write(list(value) if isinstance(value, tuple) else value)


def _bytearray_schema() -> dict[str, Any]:
    def write(value: object) -> str:
        if not isinstance(value, bytearray):
            msg = "a bytearray is needed"
            raise TypeError(msg)
        return base64.urlsafe_b64encode(value).decode("ascii")

    schema = core_schema.no_info_after_validator_function(
        bytearray, core_schema.bytes_schema(), serialization=core_schema.plain_serializer_function_ser_schema(write)
    )
    return cast("dict[str, Any]", schema)


def _enum_by_name(kind: type[Enum]) -> dict[str, Any]:
    def read(value: object) -> Enum:
        if isinstance(value, kind):
            return value
        if isinstance(value, str) and value in kind.__members__:
            return kind[value]
        msg = f"one of {', '.join(kind.__members__)} is needed"
        raise ValueError(msg)

    def write(value: object) -> Any:
        if not isinstance(value, kind):
            msg = f"a member of {kind.__name__} is needed"
            raise TypeError(msg)
        return enum_text(value)

    schema = core_schema.no_info_plain_validator_function(
        read, serialization=core_schema.plain_serializer_function_ser_schema(write)
    )
    return cast("dict[str, Any]", schema)


def _any_key(key: object) -> str:
    return key_text(key, "key")


def _null_key(key: object) -> object:
    return None if key == "null" else key


def _key_or_null(key: object, write: Callable[[Any], Any]) -> Any:
    return "null" if key is None else write(key)


def _distinct_keys(value: Any, write: Callable[[Any], Any]) -> Any:
    plain = write(value)
    for key in value:
        if isinstance(key, (float, Decimal)):
            check_number(key, "key")
    if len(plain) != len(value):
        raise refused("key", "two keys become the same JSON key; use keys of one type")
    return plain
