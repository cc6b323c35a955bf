"""Workflows and activities that the command line's tests run."""

from datetime import timedelta

from orchestrator import activity, workflow


@activity.defn(queue="cli_payments")
def cli_charge(order_id: str, cents: int) -> str:
    return f"charged {order_id} {cents}"


@workflow.defn(queue="cli_orders", signals={"address": str})
async def cli_fulfil(order_id: str, cents: int) -> str:
    paid = await cli_charge.execute(order_id, cents)
    address = await workflow.wait_for_signal("address", str, timeout=timedelta(days=3))
    return f"{paid}, to {address}"


@workflow.defn(queue="cli_orders")
class CliApproval:
    def __init__(self) -> None:
        self.by: str | None = None

    @workflow.run
    async def run(self, amount: int) -> str:
        await workflow.wait_condition(lambda: self.by is not None)
        return f"{amount} approved by {self.by}"

    @workflow.signal
    def approve(self, by: str) -> None:
        self.by = by

    @workflow.query
    def pending(self) -> bool:
        return self.by is None
