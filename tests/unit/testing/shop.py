"""Workflows and activities that the test kit's tests run."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from celery import Task, shared_task

from orchestrator import activity, workflow
from orchestrator.errors import ActivityError
from orchestrator.model.options import RetryPolicy


class CardDeclined(Exception):
    """Trying again would not help."""


class GatewayDown(Exception):
    """Trying again helps."""


@dataclass(frozen=True)
class Parcel:
    order_id: str
    weight: Decimal


@activity.defn(name="kit.charge", queue="payments", retry_policy=RetryPolicy(non_retryable_error_types=[CardDeclined]))
def charge(order_id: str, cents: int) -> str:
    return f"charged {cents} for {order_id}"


@activity.defn(name="kit.pack")
async def pack(order_id: str, weight: Decimal = Decimal(1)) -> Parcel:
    await asyncio.sleep(0)
    return Parcel(order_id, weight)


@activity.defn(name="kit.send", heartbeat_timeout=30)
def send(parcel: Parcel) -> str:
    return f"sent {parcel.order_id}"


@activity.defn(name="kit.crawl", heartbeat_timeout=30, start_to_close_timeout=600)
def crawl(pages: int) -> int:
    done = activity.info().heartbeat_details(int) or 0
    for page in range(done + 1, pages + 1):
        activity.heartbeat(page)
    return done


@shared_task(name="kit.legacy")
def legacy(value: int) -> int:
    return value + 1


@shared_task(name="kit.stubborn", bind=True, max_retries=3, default_retry_delay=3600)
def stubborn(self: Task, needed: int) -> int:
    if self.request.retries < needed:
        raise self.retry()
    return int(self.request.retries)


@workflow.defn(name="kit.nap")
async def nap(days: int) -> str:
    before = workflow.now()
    await workflow.sleep(timedelta(days=days))
    return str(workflow.now() - before)


@workflow.defn(name="kit.blink")
async def blink() -> str:
    await workflow.sleep(1)
    return "blinked"


@workflow.defn(name="kit.fulfil", signals={"address": str})
async def fulfil(order_id: str, cents: int) -> str:
    await charge.execute(order_id, cents)
    address = await workflow.wait_for_signal("address", str, timeout=timedelta(days=3))
    parcel = await pack.execute(order_id)
    return f"{await send.execute(parcel)} to {address}"


@workflow.defn(name="kit.pay")
async def pay(order_id: str, cents: int) -> str:
    return await charge.execute(order_id, cents)


@workflow.defn(name="kit.pay_or_not")
async def pay_or_not(order_id: str) -> str:
    try:
        return await charge.with_options(start_to_close_timeout=60).execute(order_id, 1)
    except ActivityError as error:
        return f"{error.type} after {error.attempt}"


@workflow.defn(name="kit.pay_in_time")
async def pay_in_time(order_id: str) -> str:
    try:
        async with asyncio.timeout(60):
            return await charge.execute(order_id, 1)
    except TimeoutError:
        return f"gave up at {workflow.now():%H:%M:%S}"


@workflow.defn(name="kit.both")
async def both(order_id: str) -> list[str]:
    order: list[str] = []

    async def noted(name: str, work: Coroutine[Any, Any, Any]) -> None:
        await work
        order.append(f"{name} {workflow.now():%H:%M:%S}")

    await asyncio.gather(noted("charge", charge.execute(order_id, 1)), noted("pack", pack.execute(order_id)))
    return order


@workflow.defn(name="kit.crawling")
async def crawling(pages: int) -> int:
    return await crawl.execute(pages)


@workflow.defn(name="kit.by_name")
async def by_name(value: int) -> int:
    return int(await workflow.execute_activity("kit.elsewhere", args=[value]))


@workflow.defn(name="kit.old_task")
async def old_task(value: int) -> int:
    return await activity.of(legacy).execute(value)


@workflow.defn(name="kit.stubborn_task")
async def stubborn_task(needed: int) -> int:
    return await activity.of(stubborn).execute(needed)


@workflow.defn(name="kit.broken")
async def broken() -> None:
    nowhere()  # type: ignore[name-defined] # noqa: F821


@workflow.defn(name="kit.dice")
async def dice(throws: int) -> int:
    return sum(workflow.side_effect(lambda: 6) for _ in range(throws))


@workflow.defn(name="kit.for_ever")
async def for_ever() -> None:
    while True:
        await workflow.sleep(timedelta(hours=1))


@workflow.defn(name="kit.Approval")
class Approval:
    def __init__(self) -> None:
        self.by: str | None = None
        self.reminders = 0

    @workflow.run
    async def run(self, amount: int) -> str:
        while self.by is None:
            try:
                await workflow.wait_condition(lambda: self.by is not None, timeout=timedelta(days=1))
            except TimeoutError:
                self.reminders += 1
        return f"{amount} approved by {self.by}"

    @workflow.signal
    def approve(self, by: str) -> None:
        self.by = by

    @workflow.query
    def pending(self) -> bool:
        return self.by is None


@workflow.defn(name="kit.Door")
class Door:
    def __init__(self) -> None:
        self.is_open = False

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.is_open)
        return "open"

    @workflow.signal
    def open(self) -> None:
        self.is_open = True
