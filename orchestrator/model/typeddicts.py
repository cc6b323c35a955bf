"""Makes ``typing.TypedDict`` usable as a hint before Python 3.12.

Pydantic accepts only ``typing_extensions.TypedDict`` there; a class written with the standard one is replaced
by its twin, also inside other hints. (Inside dataclasses pydantic's own error tells what to import.)
"""

from __future__ import annotations

import sys
import types
import typing
from typing import Any

import typing_extensions


def with_pydantic_typeddicts(hint: Any) -> Any:
    """Returns the hint with each standard TypedDict replaced by a twin that pydantic accepts."""
    if sys.version_info >= (3, 12):
        return hint
    return _replaced(hint, {})


def _replaced(hint: Any, twins: dict[Any, Any]) -> Any:
    if typing.is_typeddict(hint):
        return _twin(hint, twins) if type(hint).__module__ == "typing" else hint
    arguments = typing.get_args(hint)
    if not arguments or typing.get_origin(hint) is typing.Literal:
        return hint
    new = tuple(
        [_replaced(member, twins) for member in argument] if isinstance(argument, list) else _replaced(argument, twins)
        for argument in arguments
    )
    if all(a is b or a == b for a, b in zip(new, arguments, strict=True)):
        return hint
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return typing.Annotated[(new[0], *hint.__metadata__)]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[new]  # noqa: UP007 - the members are only known at run time
    return hint.copy_with(new) if hasattr(hint, "copy_with") else origin[new]


def _twin(source: Any, twins: dict[Any, Any]) -> Any:
    if source not in twins:
        make: Any = typing_extensions.TypedDict
        twin = make(source.__name__, {}, total=source.__total__)
        twin.__module__ = source.__module__
        twins[source] = twin
        hints = typing.get_type_hints(source, include_extras=True)
        required = {name for name, hint in hints.items() if _is_required(hint, name in source.__required_keys__)}
        twin.__annotations__ = {
            name: _marked(_replaced(_bare(hint), twins), required=name in required) for name, hint in hints.items()
        }
        twin.__required_keys__, twin.__optional_keys__ = frozenset(required), frozenset(hints.keys() - required)
    return twins[source]


def _bare(hint: Any) -> Any:
    while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
        (hint,) = typing.get_args(hint)
    return hint


def _is_required(hint: Any, otherwise: bool) -> bool:
    # Postponed annotations hide the marks from the class itself; the resolved hint shows them.
    origin = typing.get_origin(hint)
    return origin is typing.Required or (otherwise and origin is not typing.NotRequired)


def _marked(hint: Any, *, required: bool) -> Any:
    return typing_extensions.Required[hint] if required else typing_extensions.NotRequired[hint]
