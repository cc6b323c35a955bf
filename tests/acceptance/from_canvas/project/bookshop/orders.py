from celery import chain
from celery.result import AsyncResult

from bookshop.celery import durable
from bookshop.tasks import charge, reserve, ship
from bookshop.workflows import fulfil_books
from orchestrator import WorkflowHandle


def place_before(order_id: str, cents: int) -> AsyncResult[str]:
    return chain(reserve.s(order_id), charge.s(cents), ship.s()).delay()


def place(order_id: str, cents: int) -> WorkflowHandle[None, str]:
    return durable.start(fulfil_books, order_id, cents, id=f"order-{order_id}")
