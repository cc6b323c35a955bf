from typing import Any

from celery import Task, shared_task

from bookshop.outside import gateway, warehouse


@shared_task
def reserve(order_id: str) -> str:
    return warehouse.reserve(order_id)


@shared_task(bind=True, max_retries=5)
def charge(self: Task[Any, Any], reservation: str, cents: int) -> str:
    try:
        return gateway.charge(reservation, cents)
    except ConnectionError as error:
        raise self.retry(exc=error, countdown=60 * 2**self.request.retries) from error


@shared_task
def ship(receipt: str) -> str:
    return warehouse.ship(receipt)


@shared_task
def release(reservation: str) -> None:
    warehouse.release(reservation)
