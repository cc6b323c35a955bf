"""The same order as a bare Celery chain, for comparison: good Celery code, with retries and error callbacks.

What it cannot do is remember. Where an order stands is known by the message in flight and nothing else, so a
message that dies with its worker is an order that nobody goes on with. It does not wait for approvals either: a
chain has nothing to wait with.
"""

from __future__ import annotations

from typing import Any

from celery import Celery, Task, chain, shared_task

from activities.orders.models import Order
from activities.orders.outside import GatewayError, perform

OrderData = dict[str, Any]

_UNDO = {"reserve_stock": [], "charge": ["release_stock"], "ship": ["refund", "release_stock"]}


def order_chain(order: Order, app: Celery) -> chain:
    """Return the chain for one order; ``.apply_async()`` sends it through ``app``."""
    data = order.model_dump(mode="json")
    links = [
        step.si(data).on_error(give_up.si(data, _UNDO[step.name.removeprefix("bare.")]))
        for step in (reserve_stock, charge, ship)
    ]
    return chain(*links, invoice.si(data), notify.si(data), app=app)


def _bare(step: str) -> Any:
    def run(self: Task[Any, str], data: OrderData) -> str:
        # The task id stays the same when Celery retries, so it serves as the idempotency key.
        return perform(Order(**data), step, attempt=self.request.retries + 1, key=str(self.request.id))

    return shared_task(
        bind=True,
        name=f"bare.{step}",
        autoretry_for=(GatewayError,),
        max_retries=9,
        retry_backoff=1,
        ignore_result=True,
    )(run)


reserve_stock = _bare("reserve_stock")
charge = _bare("charge")
ship = _bare("ship")
invoice = _bare("invoice")
notify = _bare("notify")


@shared_task(bind=True, name="bare.give_up", ignore_result=True)
def give_up(self: Task[Any, None], data: OrderData, undo: list[str]) -> None:
    """Undo what was done before a step was refused, and tell the customer."""
    for step in (*undo, "notify"):
        perform(Order(**data), step, attempt=self.request.retries + 1, key=f"{self.request.id}/{step}")
