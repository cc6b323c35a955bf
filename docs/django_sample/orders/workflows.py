"""The way of an order. Celery finds this module by its name."""

from datetime import timedelta

from orchestrator import workflow
from orders.tasks import charge, refund, send


@workflow.defn(signals={"packed": str})
async def fulfil(order_id: int) -> str:
    """Charges, waits for the parcel, and sends it, or gives the money back after three days."""
    receipt = await charge.execute(order_id)
    try:
        parcel = await workflow.wait_for_signal("packed", str, timeout=timedelta(days=3))
    except TimeoutError:
        await refund.execute(order_id, receipt)
        return "refunded"
    await send.execute(order_id, parcel)
    return f"sent as {parcel}"
