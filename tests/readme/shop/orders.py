# shop/orders.py
import asyncio
from datetime import timedelta

from orchestrator import RetryPolicy, activity, workflow
from shop import warehouse
from shop.payments import CardDeclined, gateway


@activity.defn(
    queue="payments",
    start_to_close_timeout=timedelta(seconds=30),
    retry_policy=RetryPolicy(non_retryable_error_types=[CardDeclined]),
)
def charge(order_id: str, cents: int) -> str:
    return gateway.charge(order_id, cents, idempotency_key=activity.info().idempotency_key)


@activity.defn
def pick(order_id: str) -> str:
    return warehouse.pick(order_id)


@activity.defn
def print_label(order_id: str, address: str) -> str:
    return warehouse.label(order_id, address)


@workflow.defn(queue="orders", signals={"address": str})
async def fulfil(order_id: str, cents: int) -> str:
    await charge.execute(order_id, cents)  # survives kill -9; retried as the policy says
    address = await workflow.wait_for_signal("address", str, timeout=timedelta(days=3))
    parcel, label = await asyncio.gather(pick.execute(order_id), print_label.execute(order_id, address))
    return f"{parcel} {label}"
