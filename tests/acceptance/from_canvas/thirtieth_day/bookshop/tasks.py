from datetime import timedelta

from celery import shared_task

from bookshop.outside import CardDeclined, gateway, warehouse
from orchestrator import RetryPolicy, activity


@shared_task
def reserve(order_id: str) -> str:
    return warehouse.reserve(order_id)


@activity.defn(
    name="bookshop.tasks.charge",
    start_to_close_timeout=timedelta(seconds=30),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(minutes=1),
        maximum_interval=timedelta(hours=1),
        maximum_attempts=6,
        non_retryable_error_types=[CardDeclined],
    ),
)
def charge(reservation: str, cents: int) -> str:
    return gateway.charge(reservation, cents, idempotency_key=activity.info().idempotency_key)


@activity.defn(name="bookshop.tasks.ship")
def ship(receipt: str) -> str:
    return warehouse.ship(receipt)


@shared_task
def release(reservation: str) -> None:
    warehouse.release(reservation)
