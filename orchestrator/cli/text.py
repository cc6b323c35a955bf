"""Text that is safe to print: ids and payloads are other people's data.

An id may hold anything that is not a control character today, and an error message anything at all: ANSI
sequences that repaint the terminal, characters that reverse the reading direction, rich's own markup. None
of it reaches the terminal as anything but visible text.
"""

from __future__ import annotations

import json
import re
from typing import Any

# Controls (C0 but for the line feed, DEL, C1), line and paragraph separators, invisible and bidirectional
# formatting but for the joiners that emoji are made with, lone surrogates, tags.
_UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_NAMES = {"\t": r"\t", "\r": r"\r"}


def printable(text: str, *, keep_lines: bool = False) -> str:
    r"""Returns text with everything a terminal would act on written out, for example ``\x1b``.

    Args:
        text: Any text.
        keep_lines: True leaves line feeds as they are.
    """
    safe = _UNSAFE.sub(_written_out, text)
    return safe if keep_lines else safe.replace("\n", r"\n")


def to_json(value: Any, *, indent: int | None = 2) -> str:
    """Returns a value as JSON that is safe to print and still reads back the same."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent, default=_plain)
    except ValueError:
        # A number of more digits than the interpreter converts: exact, on one line.
        text = _with_huge_numbers(value)
    # json.dumps writes out the C0 controls; what else is unsafe stands inside strings only.
    return _UNSAFE.sub(_json_escape, text)


def one_line(value: Any, limit: int = 200) -> str:
    """Returns a value as compact JSON, cut to ``limit`` characters, for a table's cell."""
    text = to_json(value, indent=None)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _written_out(match: re.Match[str]) -> str:
    character = match.group()
    if character in _NAMES:
        return _NAMES[character]
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


def _with_huge_numbers(value: Any) -> str:
    from orchestrator.model import jsontext

    return jsontext.write(_without_records(value)).decode()


def _without_records(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_records(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_records(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float)) else _without_records(_plain(value))


def _plain(value: Any) -> Any:
    """Turns what the client answers into JSON: instants as ISO 8601, enum members as their values."""
    from dataclasses import fields, is_dataclass
    from datetime import datetime

    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} is not plain JSON")
