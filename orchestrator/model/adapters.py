"""Type hints at work: a value to plain JSON data, and JSON text back to the value.

The rule is that a value which can't be read back *as what it was* is refused when it is stored, at the call,
where it can still be mended. So each value with more than a scalar hint is read back once before it is
accepted: strictly first, since ``"5"`` for an int or ``true`` for a 1 is a mistake; where a class or a union
is involved, the two values are compared by type.

Reading stored data is lenient instead: fields that are gone are ignored, defaults fill in for new ones, and
numbers in text are taken for numbers, because the code that wrote them may be older.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache
from types import GenericAlias
from typing import Any

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, PydanticSerializationError, SchemaSerializer, SchemaValidator

from orchestrator.errors import PayloadError
from orchestrator.model import jsontext, plain
from orchestrator.model.sameness import Comparison
from orchestrator.model.schemas import STORAGE_CONFIG, Adjusted
from orchestrator.model.typeddicts import with_pydantic_typeddicts

_MASK = b"**********"
_REPLACEMENT = "\ufffd".encode()

_unhinted: ContextVar[set[int] | None] = ContextVar("unhinted", default=None)
"""Ids of the values without a hint that the dump under way wrote in their documented form."""


class Unusable(TypeError):
    """No adapter can be made for a type hint."""


class Adapter:
    """Writes and reads values of one type hint.

    Args:
        hint: A type hint that pydantic knows.

    Raises:
        Unusable: Pydantic does not know it.
    """

    def __init__(self, hint: Any) -> None:
        adjusted = Adjusted(_core_schema(hint), _any_to_plain)
        try:
            # Classes that are already built would be used as they are, without the adjustments.
            self._serializer = SchemaSerializer(adjusted.schema, STORAGE_CONFIG, False)
            self._validator = SchemaValidator(adjusted.schema, STORAGE_CONFIG, False)
        except Exception as error:
            raise Unusable(_one_line(error)) from error
        self._doubtful = adjusted.doubtful
        self._by_alias = adjusted.by_alias

    def dump(self, value: object, path: str) -> Any:
        """Returns plain JSON data, by the names of fields (not their aliases).

        Raises:
            PayloadError: The value does not fit the hint, or has no JSON form; the place is named.
        """
        try:
            return self._serializer.to_python(value, mode="json", by_alias=False, round_trip=True, warnings="error")
        except Exception as error:
            plain.find_fault(value, path, strangers=True)
            place, reason = self._misfit(value) or ((), _why_unwritable(error, value))
            raise plain.refused(_joined(path, place), reason) from error

    def write(self, value: object, path: str) -> tuple[bytes, Any]:
        """Returns the JSON text of a value, and its data, after having read it back.

        Raises:
            PayloadError: The value does not fit the hint, or would be read back as something else; the place
                is named.
        """
        unhinted: set[int] = set()
        token = _unhinted.set(unhinted)
        try:
            data = self.dump(value, path)
        finally:
            _unhinted.reset(token)
        try:
            body = jsontext.write(data)
        except Exception as error:  # noqa: BLE001 - explained, never swallowed
            plain.explain(value, path, error)
        self._check(value, body, path, unhinted)
        return body, data

    def load(self, body: bytes, path: str) -> Any:
        """Returns the value of a JSON text.

        Raises:
            PayloadError: It does not fit the hint; the place is named.
        """
        try:
            return self._read(body, strict=None)
        except ValidationError as error:
            place, reason = _first(error)
            raise plain.refused(_joined(path, place), f"the stored value does not fit: {reason}") from error
        except Exception as error:
            raise plain.refused(path, f"the stored value can't be read: {_one_line(error)}") from error

    def _misfit(self, value: object) -> tuple[tuple[int | str, ...], str] | None:
        """Returns the place inside that does not fit and the reason, as reading the value back would find it."""
        try:
            data = self._serializer.to_python(value, mode="json", by_alias=False, round_trip=True, warnings=False)
            self._read(jsontext.write(data), strict=True)
        except ValidationError as error:
            place, reason = _first(error)
            # A dict in place of an object of a class lacks fields, but that is not what is wrong with it.
            return (place, reason) if place and error.errors(include_url=False)[0]["type"] != "missing" else None
        except Exception:  # noqa: BLE001 - the error of the first attempt is told instead
            return None
        return None

    def _check(self, value: object, body: bytes, path: str, unhinted: set[int]) -> None:
        try:
            again, compare = self._read(body, strict=True), self._doubtful
        except Exception as error:  # noqa: BLE001 - validators of the user may raise anything
            again, compare = self._read_leniently(value, body, path, error), True
        if _REPLACEMENT in body:
            # What pydantic writes for a lone surrogate in a key, and what the text may hold anyway.
            plain.find_fault(value, path)
        if _MASK in body:
            plain.find_fault(value, path, secrets=True)
        if compare and (found := Comparison(unhinted).difference(value, again, path)):
            raise plain.refused(*found)

    def _read_leniently(self, value: object, body: bytes, path: str, strictly: Exception) -> Any:
        try:
            return self._read(body, strict=None)
        except Exception:  # noqa: BLE001 - the first error is the one to tell
            plain.find_fault(value, path)
            if isinstance(strictly, ValidationError):
                place, reason = _first(strictly)
                raise plain.refused(_joined(path, place), reason) from strictly
            raise plain.refused(path, f"can't be read back: {_one_line(strictly)}") from strictly

    def _read(self, body: bytes, *, strict: bool | None) -> Any:
        try:
            return self._validator.validate_json(body, strict=strict, by_alias=self._by_alias, by_name=True)
        except ValidationError as error:
            if "number out of range" not in str(error.errors(include_url=False, include_input=False)[0]["msg"]):
                raise
        # Pydantic's parser stops at 4,300 digits; the data is read by ours instead.
        return self._validator.validate_python(jsontext.read(body), by_alias=self._by_alias, by_name=True)


def _core_schema(hint: Any) -> CoreSchema:
    # In a tuple, because a configuration is refused for a class itself; arbitrary types are allowed here only
    # so that an error appears where such a value is met, not where a field of that type stands at None.
    make: Any = TypeAdapter
    try:
        wrapped = make(
            GenericAlias(tuple, (with_pydantic_typeddicts(hint),)),
            config=ConfigDict(arbitrary_types_allowed=True),
        ).core_schema
        if wrapped["type"] == "definitions":
            return {**wrapped, "schema": wrapped["schema"]["items_schema"][0]}
        schema: CoreSchema = wrapped["items_schema"][0]
    except PydanticUserError as error:
        if error.code == "class-not-fully-defined":
            msg = "a class named in it can't be found; define such classes at the level of the module"
            raise Unusable(msg) from error
        raise Unusable(_one_line(error)) from error
    except Exception as error:
        raise Unusable(_one_line(error)) from error
    return schema


_adapters = lru_cache(maxsize=4096)(Adapter)


def adapter_for(hint: Any, path: str) -> Adapter:
    """Returns the adapter of a hint, made once.

    Args:
        hint: A type hint.
        path: Named by the error.

    Raises:
        PayloadError: Pydantic does not know the hint.
    """
    try:
        return _adapters(hint)
    except Unusable as error:
        reason = str(error)
    except TypeError:
        # Not hashable, for example Annotated with a list.
        try:
            return Adapter(hint)
        except Unusable as error:
            reason = str(error)
    shown = hint.__qualname__ if isinstance(hint, type) else str(hint)[:200]
    raise plain.refused(path, f"the type hint {plain.shortened(shown)} can't be stored: {reason}")


def _any_to_plain(value: object) -> Any:
    if (unhinted := _unhinted.get()) is not None:
        unhinted.add(id(value))
    return to_plain(value, "value")


def to_plain(value: object, path: str) -> Any:
    """Returns the documented JSON form of a value without a hint.

    Raises:
        PayloadError: It has none; the place is named.
    """
    return plain.to_plain(value, path, _structured)


def _structured(value: object, path: str) -> Any:
    return adapter_for(type(value), path).dump(value, path)


def _joined(path: str, place: tuple[int | str, ...]) -> str:
    for step in place:
        path = plain.item(path, step) if isinstance(step, int) else plain.attribute(path, step)
    return path


def _first(error: ValidationError) -> tuple[tuple[int | str, ...], str]:
    details = error.errors(include_url=False, include_context=False)
    found = details[0]
    if found["type"] == "needs_python_object":
        return found["loc"], "its declared type has no JSON form; declare plain data, a dataclass or a pydantic model"
    given = found["input"]
    got = "" if found["type"] in ("missing", "json_invalid") else f", not {plain.type_name(given)}"
    more = "" if len(details) == 1 else f" (and {len(details) - 1} more)"
    return found["loc"], f"{found['msg']}{got}{more}"


def _why_unwritable(error: Exception, value: object) -> str:
    cause = error.__cause__
    if isinstance(cause, PayloadError):
        return cause.reason
    text = _one_line(error)
    if isinstance(error, PydanticSerializationError):
        text = text.removeprefix("Pydantic serializer warnings: ")
        # Pydantic shows the value as well, which may be a secret.
        text = text.split(" - serialized value", 1)[0].removeprefix("PydanticSerializationUnexpectedValue(")
        if text.startswith("Expected"):
            return f"is of the wrong type: give {text.removeprefix('Expected ')}, not {plain.type_name(value)}"
    return text


def _one_line(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - an error that can't be shown
        text = ""
    text = text.split(" For further information", 1)[0].encode("utf-8", "backslashreplace").decode()
    return f"{type(error).__name__}: {text[:300]}" if not isinstance(error, PydanticSerializationError) else text[:300]
