from celery.result import AsyncResult

from bookshop.tasks import charge, release
from orchestrator import ActivityError, activity, workflow


def charge_or_release(reservation: str, cents: int) -> AsyncResult[str]:
    return charge.apply_async((reservation, cents), link_error=release.si(reservation))


@workflow.defn
async def charged_or_released(reservation: str, cents: int) -> str:
    try:
        receipt: str = await activity.of(charge).execute(reservation, cents)
    except ActivityError:
        await activity.of(release).execute(reservation)
        raise
    return receipt
