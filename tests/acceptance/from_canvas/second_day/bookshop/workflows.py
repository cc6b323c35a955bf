from bookshop.tasks import charge, reserve, ship
from orchestrator import RetryPolicy, activity, workflow

AGAIN = RetryPolicy(maximum_attempts=3)


@workflow.defn
async def fulfil_books(order_id: str, cents: int) -> str:
    reservation = await activity.of(reserve, retry_policy=AGAIN).execute(order_id)
    receipt = await activity.of(charge).execute(reservation, cents)
    return await activity.of(ship, retry_policy=AGAIN).execute(receipt)
