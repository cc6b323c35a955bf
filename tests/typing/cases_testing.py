"""The test kit as type checkers see it. Lines marked `type: ignore` must be refused."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

from celery import shared_task

from orchestrator import activity, workflow
from orchestrator.client import HistoryEvent, WorkflowHandle
from orchestrator.testing import ActivityCall, ActivityEnvironment, WorkflowEnvironment


@dataclass
class Parcel:
    id: str


@activity.defn(queue="payments")
def charge(order_id: str, cents: int) -> str:
    return f"{order_id} {cents}"


@activity.defn
async def pack(order_id: str) -> Parcel:
    return Parcel(order_id)


@shared_task
def legacy(value: int) -> int:
    return value


@workflow.defn
async def fulfil(order_id: str, cents: int) -> Parcel:
    await charge.execute(order_id, cents)
    return await pack.execute(order_id)


@workflow.defn
class Approval:
    @workflow.run
    async def run(self, amount: int) -> str:
        return str(amount)


def workflows(env: WorkflowEnvironment) -> None:
    assert_type(env.run(fulfil, "42", 999), Parcel)
    assert_type(env.run(Approval.run, 500, id="a", timeout=timedelta(days=1)), str)
    assert_type(env.run("fulfil", "42", 999), Any)
    handle = env.start(fulfil, "42", 999)
    assert_type(handle, WorkflowHandle[None, Parcel])
    assert_type(env.result(handle), Parcel)
    assert_type(env.history(handle), list[HistoryEvent])
    env.run(fulfil, "42")  # type: ignore[arg-type]
    env.run(fulfil, "42", "999")  # type: ignore[arg-type, call-arg]
    env.run(Approval.run, "500")  # type: ignore[arg-type]


async def awaited(env: WorkflowEnvironment) -> None:
    assert_type(await env.arun(fulfil, "42", 999), Parcel)
    assert_type(await env.aresult(await env.astart(fulfil, "42", 999)), Parcel)


async def charge_later(order_id: str, cents: int) -> str:
    return f"{order_id} {cents}"


def other_arguments(order_id: int) -> str:
    return str(order_id)


def stubs(env: WorkflowEnvironment) -> None:
    env.stub(charge, returns="paid")
    env.stub(charge.with_options(queue="other"), returns="paid", takes=timedelta(seconds=5))
    env.stub(charge, raises=ValueError)
    env.stub(charge, raises=ValueError("no"))
    env.stub(charge, side_effect=lambda order_id, cents: f"{order_id} {cents}")
    env.stub(charge, side_effect=charge_later)
    env.stub(charge, side_effect=[ValueError, ValueError("no"), "paid"])
    env.stub(pack, returns=Parcel("42"))
    env.stub(pack, side_effect=lambda order_id: Parcel(f"p-{order_id}"))
    env.stub(activity.of(legacy), returns=5)
    env.stub("elsewhere", returns=object())
    env.stub("elsewhere", side_effect=other_arguments)
    env.stub(charge, returns=5)  # type: ignore[misc]
    env.stub(pack, returns="a parcel")  # type: ignore[misc]
    env.stub(charge, raises="no")  # type: ignore[call-overload]
    env.stub(charge, side_effect=other_arguments)  # type: ignore[arg-type]
    env.stub(charge, side_effect=[5])  # type: ignore[list-item]
    assert_type(env.calls(charge), list[ActivityCall])
    assert_type(env.calls(), list[ActivityCall])


def activities(env: ActivityEnvironment) -> None:
    assert_type(env.run(charge, "42", 999), str)
    assert_type(env.run(charge, order_id="42", cents=999), str)
    assert_type(env.run(pack, "42"), Parcel)
    assert_type(env.run(charge_later, "42", 999), str)
    assert_type(env.run(other_arguments, 5), str)
    env.run(charge, "42")  # type: ignore[call-overload]
    env.run(charge, "42", "999")  # type: ignore[call-overload]


def awaited_activity(env: ActivityEnvironment) -> Coroutine[Any, Any, Parcel]:
    return env.arun(pack, "42")
