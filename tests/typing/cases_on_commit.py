"""Starting on commit as type checkers see it. Lines marked `type: ignore` must be refused."""

from __future__ import annotations

from typing import Any, assert_type

from orchestrator import Orchestrator, WorkflowHandle, workflow


@workflow.defn(queue="orders")
async def commit_order(order_id: str, cents: int) -> str:
    return f"{order_id} {cents}"


@workflow.defn
class CommitApproval:
    @workflow.run
    async def run(self, amount: int) -> bool:
        return amount > 0

    @workflow.signal
    def approve(self, by: str) -> None: ...


def right(durable: Orchestrator) -> None:
    one = durable.start_on_commit(commit_order, "42", 999, id="order-42", using="replica", robust=True)
    assert_type(one, WorkflowHandle[None, str])
    assert_type(one.result(), str)
    two = durable.start_on_commit(CommitApproval.run, 500)
    assert_type(two, WorkflowHandle[CommitApproval, bool])
    two.signal(CommitApproval.approve, "ann")
    assert_type(durable.start_on_commit("elsewhere", 1, 2, queue="far"), WorkflowHandle[Any, Any])


def wrong(durable: Orchestrator) -> None:
    durable.start_on_commit(commit_order, "42")  # type: ignore
    durable.start_on_commit(commit_order, 42, 999)  # type: ignore
    durable.start_on_commit(commit_order, "42", 999, using=1)  # type: ignore
    durable.start_on_commit(CommitApproval.run, "many")  # type: ignore
    durable.start_on_commit(42)  # type: ignore
