"""What ``doctor`` has found: what is wrong, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is."""

    UNREACHABLE = "unreachable"
    """A service does not answer; exit code 2."""
    PROBLEM = "problem"
    """Work is lost, doubled or stands still; exit code 1."""
    WARNING = "warning"
    """Work may be lost, doubled or held up under circumstances; exit code 0."""
    OK = "ok"
    """Looked at, and fine."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        level: How bad it is.
        code: A name for programs, for example ``no-worker``.
        message: What is.
        advice: What to do about it; empty when there is nothing to do.
    """

    level: Level
    code: str
    message: str
    advice: str = ""


def exit_code(findings: list[Finding]) -> int:
    """Returns the exit code that stands for the worst finding."""
    levels = {finding.level for finding in findings}
    if Level.UNREACHABLE in levels:
        return 2
    return 1 if Level.PROBLEM in levels else 0


def problem(code: str, message: str, advice: str) -> Finding:
    """Returns a finding that somebody has to act on."""
    return Finding(level=Level.PROBLEM, code=code, message=message, advice=advice)


def warning(code: str, message: str, advice: str) -> Finding:
    """Returns a finding that somebody should know of."""
    return Finding(level=Level.WARNING, code=code, message=message, advice=advice)


def fine(code: str, message: str) -> Finding:
    """Returns what is as it should be."""
    return Finding(level=Level.OK, code=code, message=message)
