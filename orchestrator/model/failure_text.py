"""The text of an exception: bounded, valid UTF-8, and had without ever raising."""

from __future__ import annotations

import traceback

MESSAGE_LIMIT = 8_192
"""Characters of a message that are kept."""

TRACEBACK_LIMIT = 16_384
"""Characters of a traceback that are kept."""

_NAME_LIMIT = 255
_FRAMES = 40


def clean(text: str, limit: int) -> str:
    """Returns text that can be stored: lone surrogates as escapes, the middle cut out if it is too long.

    Args:
        text: Any text; NUL characters stay.
        limit: Most characters that are kept; the note about the cut comes on top.
    """
    safe = text.encode("utf-8", "backslashreplace").decode()
    if len(safe) <= limit:
        return safe
    head = limit // 4
    note = f" […{len(safe) - limit:,} characters cut…] "
    return safe[:head] + note + safe[head - limit :]


def message_of(error: BaseException) -> str:
    """Returns ``str(error)``, or a note when that raises."""
    try:
        return clean(str(error), MESSAGE_LIMIT)
    except Exception as problem:  # noqa: BLE001 - str() of a user's class may raise anything
        return f"(its message can't be read: str() raised {type(problem).__name__})"


def class_name(kind: type) -> str:
    """Returns the bare name of a class."""
    return clean(kind.__name__, _NAME_LIMIT)


def qualified_name(kind: type) -> str:
    """Returns ``module.Class``."""
    return clean(f"{kind.__module__}.{kind.__qualname__}", _NAME_LIMIT)


def traceback_of(error: BaseException) -> str | None:
    """Returns the frames of an exception as text, innermost last, its notes below; None without any.

    Causes are not repeated in it: each failure holds its own.
    """
    try:
        lines = traceback.format_tb(error.__traceback__, limit=-_FRAMES)
        notes = getattr(error, "__notes__", None) or ()
        lines.extend(f"note: {note}\n" for note in notes)
        return clean("".join(lines), TRACEBACK_LIMIT) or None
    except Exception as problem:  # noqa: BLE001 - sources and notes may be anything
        return f"(its traceback can't be read: {type(problem).__name__})"
