"""Whether closing a suspended coroutine would run any of its code, read off its bytecode.

Most coroutines wait in the open, outside of any ``try`` or ``with``: closing one runs nothing and takes 2 µs. Only
the others need the block of :mod:`orchestrator.runtime.silence`, which takes a hundred times as long.
"""

from __future__ import annotations

import asyncio
import dis
import gc
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from types import AsyncGeneratorType, CodeType, CoroutineType, GeneratorType
from typing import Any

_HARMLESS = (str(Path(__file__).parent) + "/", str(Path(asyncio.__file__).parent) + "/")
"""Handlers in the runtime and in asyncio only undo waits: of no effect in a run that is dropped."""

_SUSPENDABLE = (GeneratorType, CoroutineType, AsyncGeneratorType)

# Added by the compiler around every await and around the whole body (Python 3.12); neither is code of an author.
_CLEANUP = dis.opmap.get("CLEANUP_THROW")
_INTRINSIC = dis.opmap.get("CALL_INTRINSIC_1")
_STOP_ITERATION_ERROR = 3

_parse: Callable[[CodeType], Iterable[Any]] | None = getattr(dis, "_parse_exception_table", None)


def runs_code_when_closed(chain: list[Any]) -> bool:
    """Tells whether closing might run code of the workflow's author.

    Args:
        chain: A coroutine, what it awaits, what that awaits, and so on.
    """
    return any(_is_guarded(one) or _holds_others(one, chain) for one in chain)


def _is_guarded(one: Any) -> bool:
    frame = getattr(one, "cr_frame", None) or getattr(one, "gi_frame", None)
    if frame is None and type(one).__module__ == "_asyncio":
        # The iterator of a future: written in C, and without code of its own.
        return False
    if frame is None:
        # Done already; else an async generator, or an awaitable written in C or by hand.
        return not isinstance(one, (CoroutineType, GeneratorType))
    if frame.f_code.co_filename.startswith(_HARMLESS):
        return False
    return _has_handler(frame.f_code, frame.f_lasti)


def _holds_others(one: Any, chain: list[Any]) -> bool:
    """A generator held by a frame is closed with it."""
    return any(
        isinstance(held, _SUSPENDABLE) and not any(held is known for known in chain) for held in gc.get_referents(one)
    )


@lru_cache(maxsize=4096)
def _has_handler(code: CodeType, position: int) -> bool:
    """Tells whether an exception at this instruction meets a handler that the author wrote."""
    if _parse is None:
        return True
    entries = list(_parse(code))
    seen = set()
    while position not in seen:
        seen.add(position)
        target = next((entry.target for entry in entries if entry.start <= position < entry.end), None)
        if target is None:
            return False
        operation, operand = code.co_code[target], code.co_code[target + 1]
        if operation != _CLEANUP and not (operation == _INTRINSIC and operand == _STOP_ITERATION_ERROR):
            return True
        # It raises again, and meets what stands around it.
        position = target
    return False
