"""Draws one order's life as text: a row for each step, a column for each moment, and the gap where no process lived.

For example::

    reserve_stock   ███      ░░░░░░
    charge             ██✗   ░░░░░░     ████
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

SECOND = 1_000_000


class Kind(StrEnum):
    """What a stretch of time was, by the character that draws it."""

    WORK = "█"
    WAIT = "┄"


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Time from ``start`` to ``end``, microseconds since the epoch; ``ends_with`` is drawn in its last column."""

    start: int
    end: int
    kind: Kind = Kind.WORK
    ends_with: str = ""


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One row: what it is called, and when something happened in it."""

    label: str
    stretches: Sequence[Stretch]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Time in which no process lived, in microseconds since the epoch."""

    start: int
    end: int


def draw(lanes: Sequence[Lane], gap: Gap | None, *, width: int = 100) -> list[str]:
    """Return the lines of the picture, the scale first.

    Args:
        lanes: the rows, from top to bottom; at least one stretch in all.
        gap: the time without a process, drawn through all rows.
        width: columns in all; at least 40.
    """
    start = min(stretch.start for lane in lanes for stretch in lane.stretches)
    end = max(stretch.end for lane in lanes for stretch in lane.stretches)
    label_width = max(len(lane.label) for lane in lanes) + 2
    note_width = max(len(lane.note) for lane in lanes) + 2
    scale = _Scale(start=start, span=max(end - start, 1), columns=max(width - label_width - note_width, 20))
    lines = [" " * label_width + scale.ruler()]
    rows = (f"{lane.label:<{label_width}}{_row(lane, gap, scale)}  {lane.note}".rstrip() for lane in lanes)
    return [*lines, *rows]


@dataclass(frozen=True, kw_only=True)
class _Scale:
    """Maps instants to columns."""

    start: int
    span: int
    columns: int

    def column(self, instant: int) -> int:
        """Return the column of an instant, held within the picture."""
        return min(max((instant - self.start) * self.columns // self.span, 0), self.columns - 1)

    def ruler(self) -> str:
        """Return the line of seconds, with a mark every 1, 2, 5, 10, … seconds so that marks do not touch."""
        step = next(step for step in _steps() if step * SECOND * self.columns // self.span >= 8)
        line = [" "] * (self.columns + 8)
        for second in range(0, self.span // SECOND + 1, step):
            text, at = f"{second} s", self.column(self.start + second * SECOND)
            line[at : at + len(text)] = text
        return "".join(line).rstrip()


def _steps() -> Iterable[int]:
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10


def _row(lane: Lane, gap: Gap | None, scale: _Scale) -> str:
    cells = [" "] * scale.columns
    for stretch in lane.stretches:
        first, last = scale.column(stretch.start), scale.column(stretch.end)
        cells[first : last + 1] = stretch.kind.value * (last - first + 1)
        if stretch.ends_with:
            cells[last] = stretch.ends_with
    if gap:
        first, last = scale.column(gap.start), scale.column(gap.end)
        # What ended in the gap's first column, such as the step that was cut off, stays visible.
        first += any(scale.column(stretch.end) == first for stretch in lane.stretches if stretch.ends_with)
        cells[first : last + 1] = "░" * (last - first + 1)
    return "".join(cells)


def cut(stretch: Stretch, at: int, mark: str = "✗") -> Stretch:
    """Return the stretch as it is when its process dies at ``at``."""
    return replace(stretch, end=max(stretch.start, at), ends_with=mark)
