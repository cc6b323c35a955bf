"""What a workflow type is: its name, its function or class, and the messages it takes."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from orchestrator.errors import InvalidArgument
from orchestrator.model.names import check_name, check_type
from orchestrator.model.payloads import CallSignature
from orchestrator.runtime.checks import check_constructor, check_handler, check_inputs, check_run
from orchestrator.runtime.marks import Mark, MarkKind, mark_of


@dataclass(frozen=True, kw_only=True)
class SignalDefinition:
    """One signal that a workflow type takes.

    Attributes:
        name: Its name; empty for the dynamic handler.
        signature: Its positional arguments; for a signal declared by type only, the one value.
        handler: Name of the handling method; None when ``wait_for_signal`` takes it.
        is_async: The handler is an ``async def``.
        is_dynamic: The handler takes ``(name, args)`` of every signal without a handler of its own.
    """

    name: str
    signature: CallSignature
    handler: str | None = None
    is_async: bool = False
    is_dynamic: bool = False

    @cached_property
    def hints(self) -> tuple[Any, ...]:
        """Type hints of the arguments."""
        return tuple(parameter.hint for parameter in self.signature.positional)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments."""
        return tuple(parameter.name for parameter in self.signature.positional)


@dataclass(frozen=True, kw_only=True)
class QueryDefinition:
    """One query that a workflow class answers; ``handler`` names the method."""

    name: str
    signature: CallSignature
    handler: str

    @cached_property
    def hints(self) -> tuple[Any, ...]:
        """Type hints of the arguments."""
        return tuple(parameter.hint for parameter in self.signature.positional)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments."""
        return tuple(parameter.name for parameter in self.signature.positional)

    @cached_property
    def result_hint(self) -> Any:
        """Type hint of the answer."""
        return self.signature.return_hint


@dataclass(frozen=True, kw_only=True)
class WorkflowDefinition:
    """One workflow type.

    Attributes:
        name: Its name in histories.
        queue: Queue of its decisions; None takes the default.
        cls: The class; None for a plain function.
        run: The ``async def`` that runs: the function itself, or the class's plain ``run`` function.
        signature: Inputs and result, without ``self``.
        signals: The signals it declares, by name: handlers, and ``signals={name: type}``.
        dynamic_signal: The handler of every other signal, if there is one.
        queries: The queries it answers, by name.
        fingerprint: Changes when the module that defines it changes.
    """

    name: str
    queue: str | None
    cls: type | None
    run: Callable[..., Any]
    signature: CallSignature
    signals: Mapping[str, SignalDefinition] = field(default_factory=dict)
    dynamic_signal: SignalDefinition | None = None
    queries: Mapping[str, QueryDefinition] = field(default_factory=dict)
    fingerprint: str = ""

    @cached_property
    def input_hints(self) -> tuple[Any, ...]:
        """Type hints of the inputs."""
        return tuple(parameter.hint for parameter in self.signature.positional)

    @cached_property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(parameter.name for parameter in self.signature.positional)

    @cached_property
    def result_hint(self) -> Any:
        """Type hint of the result."""
        return self.signature.return_hint

    @property
    def target(self) -> Callable[..., Any]:
        """What was decorated: the function or the class."""
        return self.run if self.cls is None else self.cls

    @property
    def declares_any_signal(self) -> bool:
        """True when signals of every name are accepted."""
        return self.dynamic_signal is not None or not self.signals

    def declared_signals(self) -> tuple[str, ...] | None:
        """Returns the names of the signals it takes, or None when it takes any."""
        return None if self.declares_any_signal else tuple(sorted(self.signals))

    def handler_of(self, signal: str) -> SignalDefinition | None:
        """Returns what handles a signal of that name, or None when ``wait_for_signal`` takes it."""
        declared = self.signals.get(signal)
        if declared is None:
            return self.dynamic_signal
        return declared if declared.handler is not None else None

    @property
    def place(self) -> str:
        """Where it is defined: ``module:qualname (file:line)``."""
        code = self.run.__code__
        target = self.target
        return f"{target.__module__}:{target.__qualname__} ({code.co_filename}:{code.co_firstlineno})"

    def is_same_place(self, other: WorkflowDefinition) -> bool:
        """Tells whether both were written at the same place, so that one replaces the other."""
        if self.target.__qualname__ != other.target.__qualname__:
            return False
        # A module run as __main__ and imported under its name is one file.
        return (
            self.target.__module__ == other.target.__module__
            or self.run.__code__.co_filename == other.run.__code__.co_filename
        )


def define(
    target: Any, *, name: str | None = None, queue: str | None = None, signals: Mapping[str, Any] | None = None
) -> WorkflowDefinition:
    """Returns the definition of a decorated function or class, after checking it.

    Raises:
        InvalidArgument: Something about it is refused; the argument, method or parameter is named.
    """
    if queue is not None:
        check_name(queue, "queue")
    cls = target if inspect.isclass(target) else None
    run = check_run(target, "workflow") if cls is None else _run_of(cls)
    check_inputs(run, is_method=cls is not None)
    signal_handlers: dict[str, SignalDefinition] = {}
    dynamic: SignalDefinition | None = None
    queries: dict[str, QueryDefinition] = {}
    if cls is not None:
        check_constructor(cls)
        signal_handlers, dynamic, queries = _messages_of(cls)
    return WorkflowDefinition(
        name=check_name((cls or run).__name__ if name is None else name, "name"),
        queue=queue,
        cls=cls,
        run=run,
        signature=CallSignature.of(run, skip_first=cls is not None),
        signals={**signal_handlers, **_declared(signals, signal_handlers)},
        dynamic_signal=dynamic,
        queries=queries,
        fingerprint=_fingerprint(run),
    )


def _run_of(cls: type) -> Callable[..., Any]:
    found = [attribute for attribute, _, mark in _marked(cls) if mark.kind is MarkKind.RUN]
    if not found:
        raise InvalidArgument(
            "run", f"class {cls.__qualname__} has no method with @workflow.run; exactly one is needed"
        )
    if len(found) > 1:
        raise InvalidArgument(
            "run", f"class {cls.__qualname__} has {len(found)} methods with @workflow.run: {', '.join(found)}; keep one"
        )
    if found[0] not in vars(cls):
        raise InvalidArgument(
            "run",
            f"class {cls.__qualname__} inherits {found[0]}(); define it there, since it names the workflow to start",
        )
    return check_run(vars(cls)[found[0]], "run")


def _marked(cls: type) -> Iterator[tuple[str, Callable[..., Any], Mark]]:
    """The marked methods of a class, in the order they were written; an override keeps the mark of what it overrides."""
    names: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        names.update(dict.fromkeys(vars(base)))
    for attribute in names:
        versions = [vars(base)[attribute] for base in cls.__mro__ if attribute in vars(base)]
        mark = next((mark for version in versions if (mark := mark_of(version)) is not None), None)
        if mark is not None:
            yield attribute, versions[0], mark


def _messages_of(
    cls: type,
) -> tuple[dict[str, SignalDefinition], SignalDefinition | None, dict[str, QueryDefinition]]:
    signals: dict[str, SignalDefinition] = {}
    queries: dict[str, QueryDefinition] = {}
    dynamic: SignalDefinition | None = None
    for attribute, function, mark in _marked(cls):
        if mark.kind is MarkKind.RUN:
            continue
        check_handler(function, attribute, may_await=mark.kind is MarkKind.SIGNAL)
        check_inputs(function, is_method=True)
        signature = CallSignature.of(function, skip_first=True)
        if mark.kind is MarkKind.QUERY:
            _check_free(mark, attribute, queries)
            queries[mark.name] = QueryDefinition(name=mark.name, signature=signature, handler=attribute)
            continue
        signal = SignalDefinition(
            name=mark.name,
            signature=signature,
            handler=attribute,
            is_async=inspect.iscoroutinefunction(function),
            is_dynamic=mark.dynamic,
        )
        if mark.dynamic:
            if dynamic is not None:
                raise InvalidArgument(attribute, f"class {cls.__qualname__} has two dynamic signal handlers; keep one")
            if len(signal.names) != 2:
                raise InvalidArgument(attribute, "a dynamic signal handler takes (self, name: str, args: list[Any])")
            dynamic = signal
        else:
            _check_free(mark, attribute, signals)
            signals[mark.name] = signal
    return signals, dynamic, queries


def _check_free(mark: Mark, attribute: str, taken: Mapping[str, SignalDefinition | QueryDefinition]) -> None:
    other = taken.get(mark.name)
    if other is not None:
        raise InvalidArgument(
            attribute,
            f"handles {mark.kind} {mark.name!r}, which {other.handler}() handles already; give it another name",
        )


def _declared(signals: object, handled: Mapping[str, SignalDefinition]) -> dict[str, SignalDefinition]:
    if signals is None:
        return {}
    if not isinstance(signals, Mapping):
        raise InvalidArgument(
            "signals", f'give a dict of names and types, as {{"address": str}}, not {type(signals).__name__}'
        )
    declared = {}
    for key, hint in signals.items():
        name = check_name(key, "signals")
        if name in handled:
            raise InvalidArgument("signals", f"{name!r} has a handler already; declare it once")
        declared[name] = SignalDefinition(name=name, signature=value_signature(name, check_type(hint, "signals")))
    return declared


def value_signature(name: str, hint: Any) -> CallSignature:
    """Returns the signature of a signal that is declared by its type: one value, or nothing for None."""
    if hint is None or hint is type(None):
        return CallSignature(name, [])
    return CallSignature(name, [inspect.Parameter("value", inspect.Parameter.POSITIONAL_ONLY, annotation=hint)])


def _fingerprint(function: Callable[..., Any]) -> str:
    """Taken when the module is loaded: later its file may hold other code than runs here."""
    module = sys.modules.get(function.__module__)
    path = getattr(module, "__file__", None) or ""
    try:
        return _fingerprint_of(path, Path(path).stat().st_mtime_ns)
    except OSError:
        code = function.__code__
        return hashlib.blake2b(code.co_code + repr(code.co_consts).encode(), digest_size=8).hexdigest()


@lru_cache(maxsize=256)
def _fingerprint_of(path: str, _modified: int) -> str:
    return hashlib.blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()
