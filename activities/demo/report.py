"""The final table: the same orders, the same kill, both ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from activities.demo.progress import Track
from activities.orders.effects import Tally
from activities.orders.models import Ending


@dataclass(frozen=True, kw_only=True)
class Account:
    """What one side did with the orders. ``seconds`` is None when it never came to an end."""

    name: str
    tracks: Sequence[Track]
    tally: Tally
    repeated: int
    seconds: float | None

    @property
    def stuck(self) -> int:
        """How many orders have not ended and nobody goes on with."""
        return sum(track.ending is None for track in self.tracks)


def final_table(accounts: Sequence[Account]) -> Table:
    """Return the table, one column for each side."""
    table = Table(title="The same orders, the same kill", title_justify="left")
    table.add_column("")
    for account in accounts:
        table.add_column(account.name, justify="right")

    def row(label: str, *values: object, style: str | None = None) -> None:
        table.add_row(label, *[str(value) for value in values], style=style)

    row("orders", *[len(account.tracks) for account in accounts])
    endings = [Counter(track.ending for track in account.tracks) for account in accounts]
    for ending in Ending:
        if any(counter[ending] for counter in endings):
            row(f"  {ending.value}", *[counter[ending] for counter in endings])
    row("  stuck for ever", *[account.stuck for account in accounts], style="bold")
    row("calls", *[account.tally.calls for account in accounts])
    row("  repeated because a worker died", *[account.repeated for account in accounts])
    row("effects applied twice", *[account.tally.doubles for account in accounts], style="bold")
    row("seconds", *["never done" if account.seconds is None else f"{account.seconds:.1f}" for account in accounts])
    return table
