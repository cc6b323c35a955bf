from bookshop.tasks import charge, reserve, ship
from orchestrator import activity, workflow


@workflow.defn
async def fulfil_books(order_id: str, cents: int) -> str:
    reservation = await activity.of(reserve).execute(order_id)
    receipt = await activity.of(charge).execute(reservation, cents)
    return await activity.of(ship).execute(receipt)
