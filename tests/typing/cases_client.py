"""Starting, signalling, querying and waiting as type checkers see them. Lines marked `type: ignore` must be refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from orchestrator import workflow
from orchestrator.client import (
    HistoryPage,
    Page,
    SignalReceipt,
    WorkflowClient,
    WorkflowDescription,
    WorkflowHandle,
)


@dataclass
class Order:
    id: str
    cents: int = 0


@workflow.defn(queue="orders", signals={"address": str})
async def fulfil(order_id: str, cents: int) -> str:
    return f"{order_id} {cents}"


@workflow.defn
async def nothing() -> None:
    return None


@workflow.defn
async def with_default(order: Order, note: str = "") -> float:
    return float(order.cents) + len(note)


@workflow.defn(queue="orders")
class Approval:
    def __init__(self) -> None:
        self.by: str | None = None

    @workflow.run
    async def run(self, amount: int, currency: str = "EUR") -> str:
        await workflow.wait_condition(lambda: self.by is not None)
        return f"{amount} {currency} approved by {self.by}"

    @workflow.signal
    def approve(self, by: str) -> None:
        self.by = by

    @workflow.signal
    async def later(self, by: str, days: int) -> None:
        self.by = f"{by} in {days}"

    @workflow.query
    def pending(self) -> bool:
        return self.by is None

    @workflow.query
    def name_after(self, prefix: str) -> list[str]:
        return [prefix, self.by or ""]


@workflow.defn
class Other:
    @workflow.run
    async def run(self, order: Order) -> Order:
        return order

    @workflow.signal
    def approve(self, by: str) -> None: ...

    @workflow.query
    def pending(self) -> bool:
        return True


class Plain:
    async def run(self, amount: int) -> str:
        return str(amount)


def starting(durable: WorkflowClient) -> None:
    assert_type(durable.start(fulfil, "42", 999, id="order-42"), WorkflowHandle[None, str])
    assert_type(durable.start(nothing), WorkflowHandle[None, None])
    assert_type(durable.start(with_default, Order("1")), WorkflowHandle[None, float])
    assert_type(durable.start(with_default, Order("1"), "note"), WorkflowHandle[None, float])
    assert_type(durable.start(Approval.run, 500), WorkflowHandle[Approval, str])
    assert_type(durable.start(Approval.run, 500, "USD", queue="slow"), WorkflowHandle[Approval, str])
    assert_type(durable.start(Other.run, Order("1")), WorkflowHandle[Other, Order])
    assert_type(durable.start("fulfil", "42", 999, id_reuse_policy="reject_duplicate"), WorkflowHandle[Any, Any])

    assert_type(durable.start(Approval.run, 500, connection=object()), WorkflowHandle[Approval, str])
    durable.flush()

    durable.start(fulfil, 999)  # type: ignore[arg-type]
    durable.start(fulfil, "42")  # type: ignore[arg-type]
    durable.start(fulfil, "42", "999")  # type: ignore[arg-type, call-arg]
    durable.start(fulfil, "42", 999, 1)  # type: ignore[arg-type, call-arg]
    durable.start(nothing, 1)  # type: ignore[arg-type]
    durable.start(with_default, "1")  # type: ignore[arg-type]
    durable.start(Approval.run)  # type: ignore[arg-type, call-arg]
    durable.start(Approval.run, "500")  # type: ignore[arg-type]
    durable.start(Approval.run, 500, 1)  # type: ignore[arg-type, call-arg]
    durable.start(Plain.run, 500)  # type: ignore[arg-type]
    durable.start(Approval, 500)  # type: ignore[arg-type]
    durable.start(fulfil, "42", 999, id=42)  # type: ignore[call-overload, call-arg]
    durable.start(fulfil, "42", 999, unknown=1)  # type: ignore[call-overload]


def signalling(durable: WorkflowClient) -> None:
    approval = durable.start(Approval.run, 500)
    assert_type(approval.signal(Approval.approve, "ann"), SignalReceipt)
    assert_type(approval.signal(Approval.later, "ann", 3, signal_id="once"), SignalReceipt)
    assert_type(approval.signal("approve", "ann"), SignalReceipt)
    assert_type(approval.signal(Approval.approve, "ann", connection=object()), SignalReceipt)
    durable.start(fulfil, "42", 999).signal("address", "Main St 1")

    approval.signal(Other.approve, "ann")  # type: ignore[arg-type]
    approval.signal(Approval.approve, 1)  # type: ignore[arg-type]
    approval.signal(Approval.approve)  # type: ignore[arg-type, call-arg]
    approval.signal(Approval.later, "ann")  # type: ignore[arg-type]
    durable.start(fulfil, "42", 999).signal(Approval.approve, "ann")  # type: ignore[arg-type]


def querying(durable: WorkflowClient) -> None:
    approval = durable.start(Approval.run, 500)
    assert_type(approval.query(Approval.pending), bool)
    assert_type(approval.query(Approval.name_after, "by "), list[str])
    assert_type(approval.query("pending"), Any)

    approval.query(Other.pending)  # type: ignore[arg-type, call-arg]
    approval.query(Approval.name_after)  # type: ignore[arg-type, call-arg]
    approval.query(Approval.name_after, 1)  # type: ignore[arg-type]


def finding(durable: WorkflowClient) -> None:
    assert_type(durable.get_handle("order-42"), WorkflowHandle[Any, Any])
    assert_type(durable.get_handle_for(Approval.run, "approval-7"), WorkflowHandle[Approval, str])
    assert_type(durable.get_handle_for(fulfil, "order-42"), WorkflowHandle[None, str])
    assert_type(durable.list(status="RUNNING", limit=10), Page)
    assert_type(durable.start(fulfil, "42", 999).result(timeout=60), str)
    assert_type(durable.start(fulfil, "42", 999).describe(), WorkflowDescription)
    assert_type(durable.start(fulfil, "42", 999).history(descending=True), HistoryPage)

    durable.start(fulfil, "42", 999).result(timeout="60")  # type: ignore[arg-type]
    durable.start(fulfil, "42", 999).result(on_blocked="ignore")  # type: ignore[arg-type]
    durable.list(limit="10")  # type: ignore[arg-type]


async def awaiting(durable: WorkflowClient) -> None:
    approval = await durable.astart(Approval.run, 500, id="approval-7")
    assert_type(approval, WorkflowHandle[Approval, str])
    assert_type(await durable.astart(fulfil, "42", 999), WorkflowHandle[None, str])
    assert_type(await durable.astart("fulfil", "42", 999), WorkflowHandle[Any, Any])
    assert_type(await approval.asignal(Approval.approve, "ann"), SignalReceipt)
    assert_type(await approval.asignal("approve", "ann", signal_id="once"), SignalReceipt)
    assert_type(await approval.aquery(Approval.name_after, "by "), list[str])
    assert_type(await approval.aresult(timeout=60, on_blocked="wait"), str)
    assert_type(await approval.adescribe(), WorkflowDescription)
    assert_type(await approval.ahistory(limit=10), HistoryPage)
    assert_type(await durable.alist(attention="blocked"), Page)
    await durable.aflush()
    await approval.acancel("no longer wanted")
    await approval.aterminate(reason="no longer wanted")

    await durable.astart(fulfil, 999)  # type: ignore[arg-type]
    await durable.astart(Approval.run, "500")  # type: ignore[arg-type]
    await approval.asignal(Other.approve, "ann")  # type: ignore[arg-type]
    await approval.asignal(Approval.approve, 1)  # type: ignore[arg-type]
    await approval.aquery(Other.pending)  # type: ignore[arg-type, call-arg]
    await approval.aresult(timeout="60")  # type: ignore[arg-type]
