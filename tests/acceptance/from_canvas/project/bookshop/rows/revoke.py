import asyncio
from datetime import timedelta

from celery import chain
from celery.result import AsyncResult

from bookshop.tasks import release, reserve, ship
from orchestrator import WorkflowHandle, activity, workflow


def place_with_an_hour(order_id: str) -> AsyncResult[str]:
    return chain(reserve.s(order_id), ship.s().set(countdown=3600)).delay()


def take_back(result: AsyncResult[str], reservation: str) -> None:
    result.revoke()
    release.delay(reservation)


@workflow.defn
async def with_an_hour(order_id: str) -> str:
    reservation = await activity.of(reserve).execute(order_id)
    try:
        await workflow.sleep(timedelta(hours=1))
    except asyncio.CancelledError:
        await activity.of(release).execute(reservation)
        raise
    return await activity.of(ship).execute(reservation)


def take_order_back(handle: WorkflowHandle[None, str]) -> None:
    handle.cancel("the customer changed their mind")
