"""What the decorators leave on a method, so that its class can be put together and a client can name it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.errors import InvalidArgument

_ATTRIBUTE = "__orchestrator_mark__"


class MarkKind(StrEnum):
    """What a method of a workflow class is for."""

    RUN = "run"
    SIGNAL = "signal"
    QUERY = "query"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What ``@workflow.run``, ``@workflow.signal`` or ``@workflow.query`` says of a method.

    Attributes:
        kind: Which decorator.
        name: Name of the signal or query.
        dynamic: The handler takes every signal without a handler of its own.
    """

    kind: MarkKind
    name: str
    dynamic: bool = False


def set_mark(function: Any, mark: Mark) -> None:
    """Leaves a mark on a function.

    Raises:
        InvalidArgument: It has another one already.
    """
    known = mark_of(function)
    if known is not None and known != mark:
        raise InvalidArgument(
            getattr(function, "__name__", mark.kind),
            f"is marked as @workflow.{known.kind} and @workflow.{mark.kind}; write two methods, or keep one decorator",
        )
    setattr(function, _ATTRIBUTE, mark)


def mark_of(function: Any) -> Mark | None:
    """Returns the mark of a function or method, or None."""
    mark = getattr(function, _ATTRIBUTE, None)
    return mark if isinstance(mark, Mark) else None
