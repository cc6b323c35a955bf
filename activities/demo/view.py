"""What the user sees while the demo runs: a live line for each order on a terminal, plain lines elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from activities.demo.progress import Mark, Track
from activities.orders.fates import STEPS

_STYLES = {
    Mark.WAITING: "dim",
    Mark.RUNNING: "yellow",
    Mark.CUT_OFF: "bold red",
    Mark.DONE: "green",
    Mark.REFUSED: "magenta",
    Mark.UNDONE: "cyan",
}
_LEGEND = (
    "● done  ◐ running  ✗ its process died  ○ to come  – refused  ↶ undone     steps: "
    "reserve → charge → ship ∥ invoice → notify"
)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One moment of the demo: seconds since its start, what the server process is at, and where the orders stand."""

    seconds: float
    state: str
    workflows: Sequence[Track]
    chains: Sequence[Track]
    given: frozenset[str]  # ids of the orders that were given in
    waiting: frozenset[str]  # and of those that wait for an approval
    closing: bool = False  # nothing will change any more: what has not ended never will


class View(ABC):
    """Shows frames, and what is said between them; leaves the terminal as it was."""

    @abstractmethod
    def show(self, frame: Frame) -> None:
        """Show where everything stands."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Show something that stays."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def words(track: Track, frame: Frame, *, workflow: bool) -> str:
    """Return in words where an order stands."""
    if track.ending is not None:
        return track.ending.value
    if track.order.order_id not in frame.given:
        return ""
    if frame.closing:
        return "stuck"
    if track.cut_off:
        return "cut off"
    if workflow and track.order.order_id in frame.waiting:
        return "waits for approval"
    running = [step for step, mark in track.marks.items() if mark is Mark.RUNNING]
    return " + ".join(running) if running else "queued"


def choose(frame: Frame, room: int) -> list[int]:
    """Return the places of the orders that get a line when there is room for ``room``: those on their way go first."""
    places = range(len(frame.workflows))
    if len(places) <= room:
        return list(places)

    def urgency(place: int) -> tuple[int, int]:
        track = frame.workflows[place]
        rank = 0 if track.cut_off else 1 if track.moving else 2 if track.ending else 3
        return rank, -place if track.ending else place

    return sorted(sorted(places, key=urgency)[:room])


class LiveView(View):
    """Redraws a table in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, frame: Frame) -> None:
        self._live.update(self._picture(frame), refresh=True)

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False)

    def _picture(self, frame: Frame) -> RenderableType:
        room = max(self._console.height - 8, 5)
        places = choose(frame, room)
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for column in ("order", "amount", "workflow", "", "bare chain", ""):
            table.add_column(column, no_wrap=True, justify="right" if column == "amount" else "left")
        for place in places:
            table.add_row(*_cells(frame, place))
        left_out = len(frame.workflows) - len(places)
        foot = Text(f"… and {left_out} more" if left_out else "", style="dim")
        head = Text(f"{frame.seconds:5.1f} s   {frame.state}", style="bold")
        return Group(head, Text(_LEGEND, style="dim"), table, foot)


def _cells(frame: Frame, place: int) -> list[RenderableType]:
    ours, bare = frame.workflows[place], frame.chains[place]
    ours_words, bare_words = words(ours, frame, workflow=True), words(bare, frame, workflow=False)
    return [ours.order.order_id, ours.order.price, _marks(ours), ours_words, _marks(bare), bare_words]


def _marks(track: Track) -> Text:
    text = Text()
    for step in STEPS:
        mark = track.marks[step]
        text.append(f"{mark.value} ", style=_STYLES[mark])
    return text


class PlainView(View):
    """Prints a line when an order has ended, and a summary every few seconds: for logs and pipes."""

    EVERY = 2.0

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told: set[str] = set()
        self._next_summary = 0.0

    def show(self, frame: Frame) -> None:
        for track in frame.workflows:
            if track.ending is not None and track.order.order_id not in self._told:
                self._told.add(track.order.order_id)
                marks = "".join(track.marks[step].value for step in STEPS)
                self._line(frame, f"{track.order.order_id}  {marks}  {track.ending.value}")
        if frame.seconds >= self._next_summary:
            self._next_summary = frame.seconds + self.EVERY
            ended = sum(track.ending is not None for track in frame.workflows)
            bare = sum(track.ending is not None for track in frame.chains)
            self._line(frame, f"{frame.state}: {ended} of {len(frame.workflows)} workflows ended, {bare} bare chains")

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    def _line(self, frame: Frame, text: str) -> None:
        self._console.print(f"{frame.seconds:5.1f} s  {text}", highlight=False, markup=False, soft_wrap=True)


def view_for(console: Console) -> View:
    """Return the view that fits the console."""
    return LiveView(console) if console.is_terminal else PlainView(console)
