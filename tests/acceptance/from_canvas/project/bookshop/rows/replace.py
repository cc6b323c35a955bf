from typing import Any

from celery import Task, chain, shared_task

from bookshop.outside import post
from bookshop.tasks import reserve, ship
from orchestrator import activity, workflow


@shared_task
def send_link(order_id: str) -> str:
    return post.write(order_id, "here is your e-book")


@shared_task(bind=True)
def deliver(self: Task[Any, Any], order_id: str, ebook: bool) -> str:
    raise self.replace(send_link.s(order_id) if ebook else chain(reserve.s(order_id), ship.s()))


@workflow.defn
async def delivery(order_id: str, ebook: bool) -> str:
    if ebook:
        return await activity.of(send_link).execute(order_id)
    reservation = await activity.of(reserve).execute(order_id)
    return await activity.of(ship).execute(reservation)
