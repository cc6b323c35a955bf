"""Where a command's answer goes: rich tables for people, JSON for programs.

Everything that comes from the database passes through :func:`~orchestrator.cli.text.printable`, and is
given to rich as Text, which it never reads as markup.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.text import printable, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.status import Status

WIDE = 400
"""Columns when the output is no terminal: nothing is cut off for want of a screen."""

STYLES = {
    "PENDING": "cyan",
    "RUNNING": "cyan",
    "COMPLETED": "green",
    "FAILED": "red",
    "CANCELED": "yellow",
    "TERMINATED": "yellow",
    "TIMED_OUT": "red",
    "CONTINUED_AS_NEW": "dim",
    "blocked": "bold red",
    "no_worker": "bold yellow",
    "problem": "bold red",
    "warning": "bold yellow",
    "ok": "green",
}


class Output:
    """Prints answers on standard output, and progress on standard error.

    Args:
        as_json: True prints JSON and no progress.
        no_color: True prints without colours.
    """

    def __init__(self, as_json: bool, no_color: bool = False) -> None:
        self.as_json = as_json
        self._no_color = no_color

    def json(self, value: Any) -> None:
        """Prints a value as JSON."""
        click.echo(to_json(value))

    def line(self, text: str, style: str = "") -> None:
        """Prints one line for people; nothing with ``--json``."""
        if not self.as_json:
            self._console.print(_text(text, style), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
        """Prints a table for people; nothing with ``--json``."""
        if self.as_json:
            return
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(_cell(value) for value in row))
        self._console.print(table)

    def facts(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Prints names and values in two columns, leaving out values that are None or empty."""
        if self.as_json:
            return
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in pairs:
            if value is not None and value not in ("", [], ()):
                table.add_row(_text(name), _cell(value))
        self._console.print(table)

    @contextmanager
    def progress(self, text: str) -> Iterator[Progress]:
        """Shows that something is waited for, where somebody sees it."""
        console = self._error_console
        if self.as_json or not console.is_terminal:
            yield Progress(None)
            return
        with console.status(_text(text)) as status:
            yield Progress(status)

    @cached_property
    def _console(self) -> Console:
        return self._make(sys.stdout)

    @cached_property
    def _error_console(self) -> Console:
        return self._make(sys.stderr)

    def _make(self, file: Any) -> Console:
        from rich.console import Console

        width = None if file.isatty() else WIDE
        no_color = self._no_color or None
        return Console(file=file, width=width, no_color=no_color, markup=False, emoji=False, highlight=False)


class Progress:
    """A line that says what is being waited for."""

    def __init__(self, status: Status | None) -> None:
        self._status = status

    @property
    def is_seen(self) -> bool:
        """False when nobody looks, so that nothing needs to be found out for it."""
        return self._status is not None

    def update(self, text: str) -> None:
        """Replaces the line."""
        if self._status is not None:
            self._status.update(_text(text))


def instant(value: datetime | None) -> str:
    """Returns an instant as people read it, in the local time zone; a dash for None."""
    return "–" if value is None else value.astimezone().isoformat(sep=" ", timespec="milliseconds")


def age(value: datetime) -> str:
    """Returns how long ago (or ahead) an instant is, for example ``3m 20s``."""
    seconds = int((datetime.now(UTC) - value).total_seconds())
    ahead, seconds = seconds < 0, abs(seconds)
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s")]
    shown = [f"{number}{unit}" for number, unit in parts if number][:2] or ["0s"]
    return f"in {' '.join(shown)}" if ahead else f"{' '.join(shown)} ago"


def _cell(value: Any) -> Any:
    if value is None:
        return _text("–", "dim")
    if isinstance(value, datetime):
        return _text(instant(value))
    text = str(value)
    return _text(text, STYLES.get(text, ""))


def _text(text: str, style: str = "") -> Any:
    from rich.text import Text

    return Text(printable(text, keep_lines=True), style=style)
