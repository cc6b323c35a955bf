"""Activities as type checkers see them. Lines marked `type: ignore` must be refused."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

from celery import Task, chain, group, shared_task

from orchestrator import ActivityError, ApplicationError, RetryPolicy, activity, workflow


@dataclass
class Order:
    id: str
    cents: int = 0


class CardDeclined(Exception):
    pass


@activity.defn
def pick(order_id: str) -> str:
    return order_id


@activity.defn(
    name="charge.card",
    queue="payments",
    start_to_close_timeout=timedelta(seconds=30),
    schedule_to_start_timeout=60,
    schedule_to_close_timeout=3600.5,
    heartbeat_timeout=timedelta(seconds=5),
    priority=5,
    retry_policy=RetryPolicy(non_retryable_error_types=[CardDeclined]),
)
def charge(order: Order, cents: int, *, currency: str = "EUR") -> Order:
    if cents < 0:
        raise ApplicationError("negative", order.id, type="Negative", non_retryable=True)
    return order


@activity.defn
async def ship(order: Order) -> int:
    return order.cents


@activity.defn(queue="slow")
async def notify(order_id: str, copies: int = 1) -> None:
    activity.heartbeat(copies, order_id)


@shared_task
def legacy(left: int, right: int = 1) -> int:
    return left + right


activity.defn(no_such_option=3)  # type: ignore[call-overload]
activity.defn(queue=3)  # type: ignore[call-overload]
activity.defn(3)  # type: ignore[call-overload]


# --- what an activity is --------------------------------------------------------------------------

sync_one: activity.Activity[[str], str] = pick
async_one: activity.AsyncActivity[[Order], int] = ship
either: activity.Activity[[Order], int] = ship
assert_type(pick("42"), str)
made: Coroutine[Any, Any, int] = ship(Order("42"))
as_task: Task[[str], str] = pick
name: str = pick.name
pick.delay("42")
pick.apply_async(("42",), queue="slow")
chain(pick.s("42"), charge.s(1))
group(pick.s("1"), pick.s("2"))
pick(42)  # type: ignore[arg-type]
pick.delay(42)  # type: ignore[arg-type]
charge(Order("42"))  # type: ignore[call-arg]


# --- calls from workflow code ---------------------------------------------------------------------


async def right() -> None:
    assert_type(await pick.execute("42"), str)
    assert_type(await charge.execute(Order("42"), 999), Order)
    assert_type(await charge.execute(Order("42"), cents=999, currency="USD"), Order)
    assert_type(await ship.execute(Order("42")), int)
    await notify.execute("42", copies=2)
    assert_type(pick.start("42"), asyncio.Future[str])
    assert_type(await pick.start("42"), str)
    pick.start("42").cancel()
    slow = pick.with_options(queue="slow", start_to_close_timeout=timedelta(minutes=5), retry_policy=RetryPolicy())
    same: activity.ActivityReference[[str], str] = slow
    del same
    assert_type(await slow.execute("42"), str)
    assert_type(await ship.with_options(heartbeat_timeout=3).execute(Order("42")), int)
    parcel, order = await asyncio.gather(pick.execute("42"), charge.execute(Order("42"), 1))
    assert_type(parcel, str)
    assert_type(order, Order)
    try:
        await pick.execute("42")
    except ActivityError as error:
        assert_type(error.is_type(CardDeclined), bool)


async def wrong() -> None:
    await pick.execute(42)  # type: ignore[arg-type]
    await pick.execute()  # type: ignore[call-arg]
    await pick.execute("42", "43")  # type: ignore[call-arg]
    await pick.execute(order="42")  # type: ignore[call-arg]
    await charge.execute(Order("42"), "999")  # type: ignore[arg-type]
    await charge.execute(Order("42"), 999, "USD")  # type: ignore[call-arg]
    await ship.execute("42")  # type: ignore[arg-type]
    pick.start(42)  # type: ignore[arg-type]
    pick.with_options(qeue="slow")  # type: ignore[call-arg]
    pick.with_options(queue=3)  # type: ignore[arg-type]
    pick.with_options(retry_policy={"maximum_attempts": 3})  # type: ignore[arg-type]
    await pick.with_options(queue="slow").execute(42)  # type: ignore[arg-type]
    number: int = await pick.execute("42")  # type: ignore[assignment]
    del number


async def forgotten_await() -> str:
    pick.execute("42")  # type: ignore[unused-coroutine]
    return pick.execute("42")  # type: ignore[return-value]


# --- existing Celery tasks ------------------------------------------------------------------------


async def existing() -> None:
    plain = activity.of(legacy, queue="slow", retry_policy=RetryPolicy(maximum_attempts=3))
    assert_type(await plain.execute(1, right=2), int)
    assert_type(await plain.with_options(queue="fast").execute(1), int)
    await plain.execute("1")  # type: ignore[arg-type]
    activity.of(len)  # type: ignore[arg-type]
    activity.of(legacy, queue=3)  # type: ignore[arg-type]
    assert_type(await workflow.execute_activity(legacy.s(1).set(queue="slow")), Any)
    await workflow.execute_activity("charge.card", args=[1], queue="payments")


# --- inside an activity ---------------------------------------------------------------------------


@activity.defn
def inside() -> str:
    info = activity.info()
    assert_type(info, activity.ActivityInfo)
    assert_type(info.workflow_id, str | None)
    assert_type(info.idempotency_key, str)
    assert_type(info.attempt, int)
    assert_type(info.heartbeat_details(int), int | None)
    assert_type(info.heartbeat_details(int, str), tuple[int, str] | None)
    assert_type(activity.in_workflow(), bool)
    assert_type(activity.is_cancelled(), bool)
    activity.logger.info("going on")
    info.attempt = 2  # type: ignore[misc]
    return info.idempotency_key
