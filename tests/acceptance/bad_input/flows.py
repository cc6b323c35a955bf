"""Workflows and activities that refuse, or are given, bad input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orchestrator import activity, workflow


@dataclass
class Order:
    """What a workflow takes."""

    id: str
    cents: int


@workflow.defn(name="bad.echo")
async def echo(value: str, times: int = 1) -> str:
    """Ends at once."""
    return value * times


@workflow.defn(name="bad.order")
async def order(given: Order) -> int:
    """Takes a dataclass."""
    return given.cents


@workflow.defn(name="bad.anything")
async def anything(value: Any) -> Any:
    """Takes what JSON can hold."""
    return value


@workflow.defn(name="bad.waiter", signals={"address": str, "stop": None})
async def waiter() -> str:
    """Waits for a signal."""
    return await workflow.wait_for_signal("address", str)


@workflow.defn(name="bad.Approval")
class Approval:
    """Waits for an approval, and answers queries."""

    def __init__(self) -> None:
        self.by: list[str] = []

    @workflow.run
    async def run(self, amount: int) -> list[str]:
        """Waits for two people."""
        await workflow.wait_condition(lambda: len(self.by) == 2)
        return self.by

    @workflow.signal
    def approve(self, by: str, level: int = 1) -> None:
        """Takes one approval."""
        self.by += [by] * level

    @workflow.query
    def pending(self, plus: int = 0) -> int:
        """Answers how many approvals are missing."""
        return 2 - len(self.by) + plus


@workflow.defn(name="bad.Other")
class Other:
    """Has a signal and a query of the same names."""

    @workflow.run
    async def run(self) -> None:
        """Ends at once."""

    @workflow.signal
    def approve(self, by: str) -> None:
        """Takes nothing."""

    @workflow.query
    def pending(self) -> int:
        """Answers nothing."""
        return 0


@activity.defn(name="bad.charge")
def charge(order_id: str, cents: int = 0) -> str:
    """Charges nothing."""
    return f"{order_id}: {cents}"


@activity.defn(name="bad.keep")
def keep(value: Any) -> Any:
    """Returns what it is given."""
    return value


def undecorated(value: str) -> str:
    """Is no workflow."""
    return value


ODD_QUEUE = "очередь/💰 1"


@activity.defn(name="bad.who/💰 'x'")
def who() -> tuple[str, str, str]:
    """Returns who it is, as it was told."""
    info = activity.info()
    return str(info.workflow_id), info.task_id, info.idempotency_key


@workflow.defn(name="bad.through_celery")
async def through_celery() -> tuple[str, str, str]:
    """Asks an activity on a queue with a name of its own."""
    return await who.with_options(queue=ODD_QUEUE).execute()
