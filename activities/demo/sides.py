"""The two ways the same orders are fulfilled, side by side: what both have in common, and the bare Celery chains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from celery import Celery

from activities.demo.processes import ServerProcess
from activities.demo.progress import Track, read_tracks
from activities.demo.server import bare_app
from activities.demo.settings import ServerSettings
from activities.orders.canvas import order_chain
from activities.orders.effects import Entry, Shop, Tally
from activities.orders.models import Order


class Side:
    """A server process, the shop's database it writes to, and the orders it was given."""

    def __init__(self, settings: ServerSettings) -> None:
        self.kind = settings.kind
        self.shop = Shop(settings.shop_url)
        self.process = ServerProcess(settings, Path(settings.directory) / f"{settings.queue}.log")
        self.dead_pids: list[int] = []

    def start(self, order: Order) -> None:
        """Give one order in."""
        raise NotImplementedError

    def kill(self) -> int:
        """Kill the server process and return its id, which no longer exists."""
        pid = self.process.pid
        self.process.kill()
        self.dead_pids.append(pid)
        return pid

    def tracks(self, orders: Sequence[Order]) -> list[Track]:
        """Return where the orders stand, by the shop's database."""
        return read_tracks(orders, self.shop.calls(), self.shop.ledger(), self.dead_pids)

    def tally(self) -> Tally:
        """Return what the shop counts."""
        return self.shop.tally()

    def repeated_calls(self) -> int:
        """Return how many calls were made again because the process that made them died before it could say so."""
        calls = self.shop.calls()
        before = {call.key for call in calls if call.pid in self.dead_pids}
        after = {call.key for call in calls if call.pid not in self.dead_pids}
        return len(before & after & self._cut_off(calls))

    def _cut_off(self, calls: Sequence[Entry]) -> set[str]:
        """Return the keys of the calls that were going on when the process died."""
        raise NotImplementedError

    def close(self) -> None:
        """End the server process and close the connections."""
        self.process.kill()
        self.shop.close()


class ChainSide(Side):
    """Bare Celery: one chain for each order."""

    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(settings)
        self._app: Celery = bare_app(settings)

    def start(self, order: Order) -> None:
        """Send the chain's first message."""
        order_chain(order, self._app).apply_async()

    def _cut_off(self, calls: Sequence[Entry]) -> set[str]:
        # A retry counts up, a message delivered once more does not.
        before = {(call.key, call.attempt) for call in calls if call.pid in self.dead_pids}
        after = {(call.key, call.attempt) for call in calls if call.pid not in self.dead_pids}
        return {key for key, _ in before & after}
