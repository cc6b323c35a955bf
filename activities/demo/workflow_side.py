"""The workflows' side of the demo, seen through the public client from outside of the server process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from activities.demo.errors import DemoFailed
from activities.demo.server import durable_app
from activities.demo.settings import RULES, ServerSettings
from activities.demo.sides import Side
from activities.demo.storyline import Moment
from activities.orders.effects import Entry
from activities.orders.models import Order, Outcome
from activities.orders.workflows import Fulfil
from orchestrator import WorkflowHandle


@dataclass(frozen=True, kw_only=True)
class Running:
    """An attempt that a process holds: ``key`` is the activity's idempotency key, ``attempt`` counts from 1."""

    order_id: str
    step: str
    key: str
    attempt: int


class WorkflowSide(Side):
    """One workflow for each order."""

    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(settings)
        self._settings = settings
        self._app, self._durable = durable_app(settings)
        self._handles: dict[str, WorkflowHandle[Fulfil, Outcome]] = {}
        self.lost: list[Running] = []

    def prepare(self) -> None:
        """Make the workflows' tables, as an operator does: with the command line. Embedded ones make themselves.

        Raises:
            DemoFailed: when the command fails; the message holds what it said.
        """
        settings = self._settings
        if settings.broker.startswith("memory:") and settings.workflows_url.startswith("sqlite:"):
            return
        command = [sys.executable, "-m", "celery", "-A", "activities.orders", "workflow", "migrate"]
        places = {"ORCHESTRATOR_DATABASE_URL": settings.workflows_url, "SHOP_BROKER_URL": settings.broker}
        # The interpreter and the words are this module's own.
        done = subprocess.run(command, env=os.environ | places, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            raise DemoFailed(f"{' '.join(command[2:])} ended with {done.returncode}:\n{done.stderr or done.stdout}")

    def start(self, order: Order) -> None:
        """Start the order's workflow: once this returns the database has it, whether or not a server lives."""
        self._handles[order.order_id] = self._durable.start(Fulfil.run, order, RULES, id=f"order-{order.order_id}")

    def kill(self) -> int:
        """Kill the server process and note which attempts it held."""
        pid = super().kill()
        self.lost = list(self._running())
        return pid

    def open_orders(self) -> list[str]:
        """Return the ids of the orders whose workflows have not ended."""
        return [order_id for order_id, handle in self._handles.items() if handle.describe().is_open]

    def retried(self) -> int:
        """Return how many of the lost attempts have been made again."""
        keys = {call.key for call in self.shop.calls() if call.pid not in self.dead_pids}
        return sum(attempt.key in keys for attempt in self.lost)

    def approve(self, order_id: str, by: str) -> None:
        """Send the approver's yes."""
        self._handles[order_id].signal(Fulfil.approve, by)

    def refuse(self, order_id: str, by: str) -> None:
        """Send the approver's no."""
        self._handles[order_id].signal(Fulfil.refuse, by)

    def outcome(self, order_id: str) -> Outcome:
        """Return how the order ended, waiting for it if need be."""
        return self._handles[order_id].result(timeout=30)

    def moments(self, order_id: str) -> list[Moment]:
        """Return the order's recorded history."""
        return [
            Moment(
                kind=event.kind,
                at=int(event.at.timestamp() * 1_000_000),
                number=event.attributes.get("number"),
                name=event.attributes.get("name"),
            )
            for event in self._handles[order_id].history().events
        ]

    def _running(self) -> Iterator[Running]:
        for order_id, handle in self._handles.items():
            run = handle.describe()
            for activity in run.activities:
                if activity.state == "started":
                    key = f"{run.run_id}/{activity.number}"
                    yield Running(order_id=order_id, step=activity.name, key=key, attempt=activity.attempt)

    def _cut_off(self, _calls: Sequence[Entry]) -> set[str]:
        return {attempt.key for attempt in self.lost}
