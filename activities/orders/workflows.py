"""Fulfilment of one order: reserve, charge, wait for approval, ship beside invoicing, undo in reverse on failure.

The code reads as if the process never died. When it does die, another worker replays the recorded history and goes
on from there.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from activities.orders.models import Ending, Order, Outcome, Rules
from activities.orders.outside import CardDeclined, OutOfStock, Refused, Undeliverable
from activities.orders.steps import (
    charge,
    invoice,
    notify,
    recall_parcel,
    refund,
    release_stock,
    remind_approver,
    reserve_stock,
    ship,
    void_invoice,
)
from orchestrator import ActivityError, activity, workflow

Step = activity.Activity[[Order], str]


class NotApproved(Exception):
    """Somebody refused the order, or nobody answered in time."""


class Verdict(NamedTuple):
    """An approver's answer."""

    by: str
    approved: bool


@workflow.defn
class Fulfil:
    """One order from reservation to delivery."""

    def __init__(self) -> None:
        self._verdict: Verdict | None = None
        self._references: dict[str, str] = {}
        self._undo: list[Step] = []
        self._undone: list[str] = []
        self._stage = "new"

    @workflow.run
    async def run(self, order: Order, rules: Rules) -> Outcome:
        """Fulfil the order; an order that cannot be fulfilled is undone and completes with another ending.

        Raises:
            ActivityError: when a step failed for a reason the shop does not know; what was done is undone first.
        """
        try:
            ending = await self._fulfil(order, rules)
        except (ActivityError, NotApproved) as error:
            await self._compensate(order)
            ending = _ending_of(error)
        except asyncio.CancelledError:
            await self._compensate(order)
            raise
        self._stage = "telling the customer"
        await notify.execute(order, ending)
        self._stage = ending
        return Outcome(
            order_id=order.order_id,
            ending=ending,
            references=self._references,
            undone=self._undone,
            approved_by=self._verdict.by if self._verdict and self._verdict.approved else None,
        )

    @workflow.signal
    def approve(self, by: str) -> None:
        """Let a big order go on; the first answer counts."""
        self._verdict = self._verdict or Verdict(by, approved=True)

    @workflow.signal
    def refuse(self, by: str) -> None:
        """Stop a big order; the first answer counts."""
        self._verdict = self._verdict or Verdict(by, approved=False)

    @workflow.query
    def stage(self) -> str:
        """Return what the order is at, for people."""
        return self._stage

    async def _fulfil(self, order: Order, rules: Rules) -> Ending:
        await self._take(reserve_stock, order, undo=release_stock)
        await self._take(charge, order, undo=refund)
        if rules.needs_approval(order):
            await self._approval(order, rules)
        shipped, invoiced = await asyncio.gather(
            self._take(ship, order, undo=recall_parcel),
            self._take(invoice, order, undo=void_invoice),
            return_exceptions=True,  # both have to end before anything is undone
        )
        for result in (shipped, invoiced):
            if isinstance(result, BaseException):
                raise result
        return Ending.SHIPPED

    async def _take(self, step: Step, order: Order, *, undo: Step) -> None:
        """Do one step and remember how to undo it."""
        self._stage = _label(step)
        # Noted before the call: a step that gave no answer to the last may have been done all the same.
        self._undo.append(undo)
        try:
            self._references[_label(step)] = await step.execute(order)
        except ActivityError as error:
            if error.is_type(Refused):
                self._undo.remove(undo)
            raise

    async def _approval(self, order: Order, rules: Rules) -> None:
        """Wait for an approver, and remind them whenever ``rules.remind_after`` passes without an answer."""
        self._stage = "waiting for approval"
        for reminder in range(rules.reminders + 1):
            try:
                await workflow.wait_condition(lambda: self._verdict is not None, timeout=rules.remind_after)
            except TimeoutError:
                if reminder < rules.reminders:
                    await remind_approver.execute(order, reminder + 1)
            else:
                break
        if self._verdict is None:
            raise NotApproved("nobody answered")
        if not self._verdict.approved:
            raise NotApproved(f"refused by {self._verdict.by}")

    async def _compensate(self, order: Order) -> None:
        """Undo what was done, last first."""
        while self._undo:
            undo = self._undo.pop()
            self._stage = _label(undo)
            await undo.execute(order)
            self._undone.append(_label(undo))


def _label(step: Step) -> str:
    return str(step.name)


def _ending_of(error: ActivityError | NotApproved) -> Ending:
    if isinstance(error, NotApproved):
        return Ending.REFUSED
    for cause, ending in (
        (OutOfStock, Ending.OUT_OF_STOCK),
        (CardDeclined, Ending.DECLINED),
        (Undeliverable, Ending.UNDELIVERABLE),
    ):
        if error.is_type(cause):
            return ending
    raise error
