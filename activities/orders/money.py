"""Amounts as people type them, read as whole cents.

Two habits meet in one file: ``1,234.56`` and ``1.234,56``. The last separator is the decimal mark when one or two
digits follow it. One lone separator with exactly three digits behind it (``1.234``) can mean either, and guessing
wrong is a factor of a
thousand: it is refused.
"""

from __future__ import annotations

import re

_SHAPE = re.compile(r"(?P<sign>[-+]?)(?P<body>[0-9][0-9.,]{0,30})")
_GROUPS = {mark: re.compile(rf"[0-9]{{1,3}}({re.escape(mark)}[0-9]{{3}})*") for mark in ",."}


class BadAmount(ValueError):
    """The text is no amount, or could be two different ones."""


def parse_cents(text: str) -> int:
    """Return the amount in ``text`` as cents, negative when it is negative.

    Raises:
        BadAmount: when the text is no amount or an ambiguous one.
    """
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise BadAmount(f"amount {text!r} is not a number")
    whole, fraction = _split(match["body"], text)
    cents = int(whole) * 100 + int(fraction.ljust(2, "0"))
    return -cents if match["sign"] == "-" else cents


def _split(body: str, text: str) -> tuple[str, str]:
    """Return the digits before and after the decimal mark."""
    mark = max(body.rfind(","), body.rfind("."))
    if mark < 0:
        return body, "0"
    decimal, whole, fraction = body[mark], body[:mark], body[mark + 1 :]
    if len(fraction) in (1, 2):
        grouping = "," if decimal == "." else "."
        return _ungroup(whole, grouping, text), fraction
    if len(fraction) == 3 and body.count(decimal) > 1:
        return _ungroup(body, decimal, text), "0"
    if len(fraction) == 3 and not set(whole) & set(",."):
        raise BadAmount(f"amount {text!r} is ambiguous: a thousands mark or a decimal mark")
    raise BadAmount(f"amount {text!r} is not a number")


def _ungroup(digits: str, grouping: str, text: str) -> str:
    """Return ``digits`` without its thousands marks."""
    if digits.isdigit():
        return digits
    if _GROUPS[grouping].fullmatch(digits) is None:
        raise BadAmount(f"amount {text!r} has its thousands marks in the wrong places")
    return digits.replace(grouping, "")
