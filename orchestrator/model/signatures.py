"""Signatures of the functions that payloads are made for: parameter names, type hints, and binding.

Hints are resolved at first use, since a decorator runs before the rest of its module is there. What can't be
resolved (a name imported for type checkers only) is taken as ``Any``, one parameter at a time.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orchestrator.errors import InvalidArgument

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of a function.

    Attributes:
        name: As written.
        hint: Its resolved type hint; ``Any`` when it has none that can be resolved.
        required: It has no default.
    """

    name: str
    hint: Any
    required: bool


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Where one given argument belongs: its name for errors, and its type hint."""

    label: str
    hint: Any


class CallSignature:
    """What a callable takes and returns.

    Made by ``of`` or ``untyped``.

    Attributes:
        name: Name of the callable, for messages.
        is_typed: False when nothing is known, so that everything is accepted.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[inspect.Parameter] | None,
        *,
        returns: Any = inspect.Parameter.empty,
        global_names: Mapping[str, Any] | None = None,
        local_names: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.is_typed = parameters is not None
        self._returns = returns
        self._globals = dict(vars(builtins)) if global_names is None else global_names
        self._locals = local_names or {}
        raw = parameters or ()
        self._raw = {parameter.name: parameter for parameter in raw}
        by_kind: dict[Any, list[str]] = {}
        for parameter in raw:
            by_kind.setdefault(parameter.kind, []).append(parameter.name)
        self._positional_only = frozenset(by_kind.get(inspect.Parameter.POSITIONAL_ONLY, ()))
        self._positional = (
            *by_kind.get(inspect.Parameter.POSITIONAL_ONLY, ()),
            *by_kind.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, ()),
        )
        self._keyword = frozenset(
            (
                *by_kind.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, ()),
                *by_kind.get(inspect.Parameter.KEYWORD_ONLY, ()),
            )
        )
        self._rest = next(iter(by_kind.get(inspect.Parameter.VAR_POSITIONAL, ())), None)
        self._rest_by_name = next(iter(by_kind.get(inspect.Parameter.VAR_KEYWORD, ())), None)
        self._required = [
            name for name in (*self._positional, *by_kind.get(inspect.Parameter.KEYWORD_ONLY, ())) if self._must(name)
        ]

    @classmethod
    def of(cls, function: Callable[..., Any], skip_first: bool = False) -> CallSignature:
        """Returns the signature of a callable.

        Call it where the function is decorated: classes that are local to a function are found on the stack.

        Args:
            function: A function, method or other callable.
            skip_first: Leave out the first parameter (``self``, or a bound Celery task).
        """
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return cls(name, None)
        parameters = list(signature.parameters.values())
        if (
            skip_first
            and parameters
            and parameters[0].kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        ):
            parameters = parameters[1:]
        plain = _plain_function(function)
        annotations = [*(parameter.annotation for parameter in parameters), signature.return_annotation]
        return cls(
            name,
            parameters,
            returns=signature.return_annotation,
            global_names=getattr(plain, "__globals__", None),
            local_names=_enclosing_names(plain, annotations),
        )

    @classmethod
    def untyped(cls) -> CallSignature:
        """Returns the signature of something known by name only: it takes anything."""
        return cls("", None)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters in order, with resolved hints."""
        return tuple(Parameter(name=name, hint=self._hints[name], required=self._must(name)) for name in self._raw)

    @cached_property
    def positional(self) -> tuple[Parameter, ...]:
        """The parameters that can be given by position, without ``*args``."""
        return tuple(parameter for parameter in self.parameters if parameter.name in self._positional)

    @cached_property
    def return_hint(self) -> Any:
        """The resolved type hint of the result; ``Any`` when there is none."""
        return self._resolve("return", self._returns)

    @cached_property
    def unannotated(self) -> tuple[str, ...]:
        """Names of the parameters without a type hint."""
        return tuple(name for name, parameter in self._raw.items() if parameter.annotation is inspect.Parameter.empty)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Slot], dict[str, Slot]]:
        """Tells where each argument of a call belongs.

        Returns:
            A slot for each positional argument, and one for each keyword argument by its name.

        Raises:
            InvalidArgument: One is missing, unexpected or given twice; it is named.
        """
        if not self.is_typed:
            return (
                [Slot(label=f"args[{index}]", hint=Any) for index in range(len(args))],
                {name: Slot(label=name, hint=Any) for name in kwargs},
            )
        if len(args) > len(self._positional) and self._rest is None:
            count = len(self._positional)
            raise InvalidArgument(
                "arguments", f"{self.name}() takes {count} by position, but {len(args)} were given: {self._shown()}"
            )
        slots = [self._slot(name) for name, _ in zip(self._positional, args, strict=False)]
        slots.extend(
            Slot(label=f"{self._rest}[{index}]", hint=self._hints[str(self._rest)])
            for index in range(len(args) - len(slots))
        )
        given = set(self._positional[: len(args)])
        named = {name: self._named(name, given) for name in kwargs}
        for name in self._required:
            if name not in given and (name not in kwargs or name in self._positional_only):
                raise InvalidArgument(name, f"is missing: give it, since {self.name}() has no default for it")
        return slots, named

    def slots_of_stored(self, count: int, names: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
        """Returns hints for the arguments of a stored call, which may be older than the function.

        Args:
            count: How many positional arguments were stored.
            names: The stored keyword arguments.

        Returns:
            A hint for each; ``Any`` for what the function does not know (calling it will tell).
        """
        hints = [self._hints[name] for name in self._positional[:count]]
        more = Any if self._rest is None else self._hints[self._rest]
        hints.extend([more] * (count - len(hints)))
        other = Any if self._rest_by_name is None else self._hints[self._rest_by_name]
        return hints, {name: self._hints[name] if name in self._keyword else other for name in names}

    def _named(self, name: str, given: set[str]) -> Slot:
        if name in self._keyword:
            if name in given:
                raise InvalidArgument(name, f"is given to {self.name}() twice, by position and by name")
            return self._slot(name)
        if self._rest_by_name is not None:
            return Slot(label=name, hint=self._hints[self._rest_by_name])
        if name in self._positional_only:
            raise InvalidArgument(name, f"{self.name}() takes it by position only")
        raise InvalidArgument(name, f"{self.name}() has no parameter of that name: {self._shown()}")

    def _slot(self, name: str) -> Slot:
        return Slot(label=name, hint=self._hints[name])

    def _shown(self) -> str:
        return f"it takes ({', '.join(self._raw)})" if self._raw else "it takes none"

    def _must(self, name: str) -> bool:
        parameter = self._raw[name]
        return parameter.default is inspect.Parameter.empty and parameter.kind not in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        )

    @cached_property
    def _hints(self) -> dict[str, Any]:
        hints = {}
        for name, parameter in self._raw.items():
            hint = self._resolve(name, parameter.annotation)
            # `amount: int = None` is wrong to type checkers, and meant.
            hints[name] = typing.Optional[hint] if parameter.default is None and hint is not Any else hint  # noqa: UP045
        return hints

    def _resolve(self, name: str, annotation: Any) -> Any:
        if annotation is inspect.Parameter.empty:
            return Any
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints = typing.get_type_hints(holder, dict(self._globals), dict(self._locals), include_extras=True)
        except Exception:  # noqa: BLE001 - evaluating the user's text may raise anything
            return Any
        hint = hints[name]
        if typing.get_origin(hint) is typing.Unpack or isinstance(hint, (typing.ParamSpecArgs, typing.ParamSpecKwargs)):
            return Any
        return hint


def _plain_function(function: Any) -> Any:
    """The function behind partials, methods and callable objects: it knows the names its hints use."""
    while hasattr(function, "func"):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__globals__") and not isinstance(function, type):
        function = getattr(type(function), "__call__", function)  # noqa: B004 - the function itself is wanted
    return inspect.unwrap(getattr(function, "__func__", function))


def _enclosing_names(function: Any, annotations: Sequence[Any]) -> dict[str, Any]:
    """Names that the hints use and that are local to the functions around; kept, since frames are not."""
    wanted = {name for text in annotations if isinstance(text, str) for name in _IDENTIFIER.findall(text)}
    outer, local, _ = getattr(function, "__qualname__", "").rpartition(".<locals>.")
    found: dict[str, Any] = {}
    if not wanted or not local:
        return found
    frame: types.FrameType | None = sys._getframe(1)  # noqa: SLF001 - the way to the names of a running function
    scopes = {part.rpartition(".")[2] for part in outer.split(".<locals>")} | {"<lambda>"}
    while frame is not None:
        if frame.f_globals is function.__globals__ and frame.f_code.co_name in scopes:
            for name in wanted.intersection(frame.f_locals):
                found.setdefault(name, frame.f_locals[name])
        frame = frame.f_back
    return found
