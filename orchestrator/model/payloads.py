"""Payloads: the one way by which values of workflow and activity code become stored bytes and come back.

A payload is JSON behind a codec chain (``orchestrator.model.codecs``). With a type hint the value returns with
its type; without one it has the documented form (``orchestrator.model.plain``). Nothing is stored that could
not be read back: such a value is refused at the call, by name and path. No pickle.

What is documented rather than kept: the name of a time zone (the offset stays), ``fold`` of a naive datetime or
time (an aware datetime keeps its instant), fields a model excludes, and a subclass, which comes back as the
class that was declared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from orchestrator.errors import PayloadError
from orchestrator.model import jsontext, plain
from orchestrator.model.adapters import adapter_for, to_plain
from orchestrator.model.codecs import Codec, CodecChain
from orchestrator.model.signatures import CallSignature

__all__ = ["DEFAULT_LIMIT", "CallSignature", "Codec", "Payload", "PayloadConverter"]

DEFAULT_LIMIT = 2 * 1024 * 1024
"""Largest stored payload in bytes, unless ``orchestrator_payload_limit`` says otherwise."""

_SCALARS: dict[Any, type] = {str: str, int: int, bool: bool, float: float, None: type(None), type(None): type(None)}


@dataclass(frozen=True, slots=True)
class Payload:
    """A value as it is stored.

    Attributes:
        data: The stored bytes.
        digest: BLAKE2b-128 in hex over the canonical JSON (keys and sets sorted), before the codecs.
    """

    data: bytes
    digest: str


class _Text(NamedTuple):
    """JSON of one value: as it is stored, and in canonical form."""

    body: bytes
    canonical: bytes


class PayloadConverter:
    """Encodes and decodes payloads.

    Args:
        codecs: Applied in order when storing; none stores plain JSON.
        limit: Largest stored payload in bytes.
    """

    def __init__(self, codecs: Sequence[Codec] = (), limit: int = DEFAULT_LIMIT) -> None:
        self._chain = CodecChain(codecs)
        self.limit = limit

    def encode(self, value: object, hint: Any = Any, *, argument: str = "value") -> Payload:
        """Returns the payload of one value.

        Args:
            value: Anything that fits the hint.
            hint: Its declared type; ``Any`` for plain JSON.
            argument: Its name, where paths in errors begin.

        Raises:
            PayloadError: It does not fit, can't be stored, or is too large.
        """
        return self._seal(_text_of(value, hint, argument), argument)

    def decode(self, data: bytes, hint: Any = Any, *, argument: str = "value") -> Any:
        """Returns the value of a payload.

        Raises:
            PayloadError: The bytes can't be read, or do not fit the hint.
        """
        return _value_of(self._chain.unwrap(data, argument), hint, argument)

    def encode_call(
        self,
        signature: CallSignature,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        argument: str = "arguments",
    ) -> Payload:
        """Returns the payload of a call, ``{"args": […], "kwargs": {…}}``.

        Args:
            signature: What is called.
            args: Positional arguments.
            kwargs: Keyword arguments.
            argument: What the error about the size names.

        Raises:
            InvalidArgument: An argument is missing, unexpected or given twice.
            PayloadError: One does not fit its hint or can't be stored; the parameter is named.
        """
        slots, named = signature.bind(args, kwargs)
        texts = [_text_of(value, slot.hint, slot.label) for value, slot in zip(args, slots, strict=True)]
        pairs = {
            plain.check_text(name, argument): _text_of(value, named[name].hint, named[name].label)
            for name, value in kwargs.items()
        }
        return self._seal(_call_text(_array(texts), pairs), argument)

    def decode_call(self, data: bytes, signature: CallSignature) -> tuple[list[Any], dict[str, Any]]:
        """Returns the positional and the keyword arguments of a stored call.

        What the function does not know any more comes back as plain JSON; calling it will tell.

        Raises:
            PayloadError: The bytes can't be read, or an argument does not fit its hint; it is named.
        """
        stored = _parsed(self._chain.unwrap(data, "arguments"), "arguments")
        args, kwargs = _parts_of_call(stored)
        hints, named = signature.slots_of_stored(len(args), list(kwargs))
        labels = [parameter.name for parameter in signature.positional]
        labels.extend(f"args[{index}]" for index in range(len(labels), len(args)))
        return (
            [_reread(part, hint, label) for part, hint, label in zip(args, hints, labels, strict=False)],
            {name: _reread(part, named[name], name) for name, part in kwargs.items()},
        )

    def encode_args(self, args: Sequence[Any], hints: Sequence[Any], *, names: Sequence[str]) -> Payload:
        """Returns the payload of positional arguments as a JSON array.

        Args:
            args: The arguments; fewer than hints when the rest have defaults.
            hints: Declared types; ``Any`` beyond their end.
            names: Parameter names, for errors; ``args[i]`` beyond their end.

        Raises:
            PayloadError: One does not fit its hint or can't be stored; it is named.
        """
        texts = [_text_of(value, _at(hints, index), _label(names, index)) for index, value in enumerate(args)]
        return self._seal(_array(texts), "arguments")

    def decode_args(self, data: bytes, hints: Sequence[Any], *, names: Sequence[str] = ()) -> list[Any]:
        """Returns positional arguments; fewer than hints when fewer were stored.

        Args:
            data: The stored bytes.
            hints: Declared types; ``Any`` beyond their end.
            names: Parameter names, for errors.

        Raises:
            PayloadError: The bytes can't be read, or an argument does not fit; it is named.
        """
        stored = _parsed(self._chain.unwrap(data, "arguments"), "arguments")
        if not isinstance(stored, list):
            raise PayloadError("arguments", "the stored value is no list of arguments")
        return [_reread(part, _at(hints, index), _label(names, index)) for index, part in enumerate(stored)]

    def _seal(self, text: _Text, argument: str) -> Payload:
        digest = hashlib.blake2b(text.canonical, digest_size=16).hexdigest()
        data = self._chain.wrap(text.body)
        if len(data) > self.limit:
            raise plain.refused(
                argument,
                f"is {len(data):,} bytes stored, over the limit of {self.limit:,} (orchestrator_payload_limit); "
                "keep the data elsewhere and pass a reference to it",
            )
        return Payload(data, digest)


def _array(texts: Sequence[_Text]) -> _Text:
    body = b"[" + b",".join([text.body for text in texts]) + b"]"
    return _Text(body, b"[" + b",".join([text.canonical for text in texts]) + b"]")


def _call_text(args: _Text, pairs: Mapping[str, _Text]) -> _Text:
    keys = {name: jsontext.write(name) for name in pairs}
    body = b",".join([keys[name] + b":" + text.body for name, text in pairs.items()])
    canonical = b",".join([keys[name] + b":" + pairs[name].canonical for name in sorted(pairs)])
    return _Text(
        b'{"args":' + args.body + b',"kwargs":{' + body + b"}}",
        b'{"args":' + args.canonical + b',"kwargs":{' + canonical + b"}}",
    )


def _parts_of_call(stored: Any) -> tuple[list[Any], dict[str, Any]]:
    if isinstance(stored, dict):
        args, kwargs = stored.get("args", []), stored.get("kwargs", {})
        if isinstance(args, list) and isinstance(kwargs, dict):
            return args, kwargs
    raise PayloadError("arguments", 'the stored value is no call: {"args": […], "kwargs": {…}} is expected')


def _at(hints: Sequence[Any], index: int) -> Any:
    return hints[index] if index < len(hints) else Any


def _label(names: Sequence[str], index: int) -> str:
    return names[index] if index < len(names) else f"args[{index}]"


def _scalar_kind(hint: Any) -> type | None:
    # Hints that are no classes may not be hashable.
    return _SCALARS.get(hint) if isinstance(hint, type) or hint is None else None


def _text_of(value: object, hint: Any, path: str) -> _Text:
    try:
        if hint is Any or hint is object:
            return _untyped_text(value, path)
        if (kind := _scalar_kind(hint)) is not None:
            return _scalar_text(value, kind, path)
        return _typed_text(value, hint, path)
    except PayloadError:
        raise
    except RecursionError as error:
        raise plain.refused(path, "nested too deeply to be stored; make it flatter") from error
    except Exception as error:
        # Objects of the user may raise anything from any method.
        raise plain.refused(path, f"{plain.type_name(value)} can't be stored: {type(error).__name__}") from error


def _scalar_text(value: object, kind: type, path: str) -> _Text:
    if type(value) is kind:
        return _written(value, path)
    if kind is float and type(value) is int and float(value) == value:
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise plain.refused(path, f"give {kind.__name__}, not {plain.type_name(value)}")
    return _written(to_plain(value, path), path)


def _untyped_text(value: object, path: str) -> _Text:
    if type(value) in (str, int, bool, float) or value is None:
        return _written(value, path)
    try:
        body = jsontext.write(value)
        # Equal after a round trip means plain JSON data: no tuple, no number as a key, nothing lost.
        if jsontext.read(body) == value:
            return _Text(body, _canonical(body, value))
    except Exception:  # noqa: BLE001, S110 - the careful way below finds and names what is wrong
        pass
    return _written(to_plain(value, path), path)


def _typed_text(value: object, hint: Any, path: str) -> _Text:
    body, data = adapter_for(hint, path).write(value, path)
    return _Text(body, _canonical(body, data))


def _written(data: Any, path: str) -> _Text:
    try:
        body = jsontext.write(data)
    except Exception as error:  # noqa: BLE001 - explained, never swallowed
        plain.explain(data, path, error)
    return _Text(body, _canonical(body, data))


def _canonical(body: bytes, data: Any) -> bytes:
    return jsontext.write(data, canonical=True) if b"{" in body else body  # only objects have an order of their own


def _parsed(body: bytes, path: str) -> Any:
    try:
        return jsontext.read(body)
    except (ValueError, RecursionError) as error:
        raise plain.refused(path, f"the stored bytes are no JSON: {error}") from error


def _value_of(body: bytes, hint: Any, path: str) -> Any:
    if hint is Any or hint is object:
        return _parsed(body, path)
    if (kind := _scalar_kind(hint)) is not None:
        value = _parsed(body, path)
        if type(value) is kind:
            return value
        _refuse_bool(value, kind, path)
    return adapter_for(hint, path).load(body, path)


def _reread(data: Any, hint: Any, path: str) -> Any:
    """The value of a part that was parsed already."""
    if hint is Any or hint is object:
        return data
    if (kind := _scalar_kind(hint)) is not None:
        if type(data) is kind:
            return data
        _refuse_bool(data, kind, path)
    return adapter_for(hint, path).load(jsontext.write(data), path)


def _refuse_bool(value: Any, kind: type, path: str) -> None:
    # Reading is lenient ("5" is taken for 5), but no code ever meant true by 1.
    if isinstance(value, bool):
        raise plain.refused(path, f"the stored value does not fit: give {kind.__name__}, not bool")
