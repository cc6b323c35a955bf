"""Workflows that the client's tests start."""

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from orchestrator import workflow
from orchestrator.errors import ApplicationError


@dataclass
class Order:
    id: str
    price: Decimal


@workflow.defn(name="client.echo", queue="orders")
async def echo(value: str, times: int = 1) -> str:
    return value * times


@workflow.defn(name="client.order")
async def order(given: Order) -> Order:
    return Order(id=given.id, price=given.price * 2)


@workflow.defn(name="client.anything")
async def anything(value: Any) -> Any:
    return value


@workflow.defn(name="client.failing")
async def failing(message: str) -> None:
    try:
        raise ValueError("the root")
    except ValueError as error:
        raise ApplicationError(message, {"code": 7}, type="Declined") from error


@workflow.defn(name="client.broken")
async def broken() -> None:
    raise NameError("nmae")


@workflow.defn(name="client.waiter", signals={"go": str, "stop": None})
async def waiter() -> str:
    return await workflow.wait_for_signal("go", str)


@workflow.defn(name="client.patient", signals={"go": str})
async def patient() -> str:
    await workflow.sleep(timedelta(days=1))
    return await workflow.wait_for_signal("go", str, timeout=timedelta(days=2))


@workflow.defn(name="client.Approval", queue="approvals")
class Approval:
    def __init__(self) -> None:
        self.by: str | None = None
        self.at: datetime | None = None

    @workflow.run
    async def run(self, amount: int) -> str:
        await workflow.wait_condition(lambda: self.by is not None)
        return f"{amount} by {self.by}"

    @workflow.signal
    def approve(self, by: str, at: datetime | None = None) -> None:
        self.by, self.at = by, at

    @workflow.query
    def pending(self) -> bool:
        return self.by is None

    @workflow.query(name="when")
    def approved_at(self, prefix: str = "") -> tuple[str, datetime | None]:
        return prefix, self.at

    @workflow.query
    def bad(self) -> str:
        raise ValueError("a failing query")


@workflow.defn(name="client.Other")
class Other:
    @workflow.run
    async def run(self) -> str:
        return "other"

    @workflow.signal
    def approve(self, by: str) -> None: ...

    @workflow.query
    def pending(self) -> bool:
        return True


@workflow.defn(name="client.declined")
async def declined() -> None:
    await workflow.execute_activity("client.charge", args=[100])


@workflow.defn(name="client.grouped")
async def grouped() -> None:
    raise ExceptionGroup("two errors", [ValueError("one"), KeyError("two")])


@workflow.defn(name="client.busy")
async def busy() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(workflow.execute_activity("client.charge"))
        group.create_task(workflow.execute_activity("client.ship"))
        group.create_task(workflow.sleep(50))
        group.create_task(workflow.wait_for_signal("go"))


@workflow.defn(name="client.many")
async def many() -> list[Any]:
    return await asyncio.gather(*(workflow.wait_for_signal(name) for name in ("a", "b", "a")))


@workflow.defn(name="client.timed_wait")
async def timed_wait() -> str:
    with contextlib.suppress(TimeoutError):
        await workflow.wait_for_signal("go", str, timeout=10)
    await workflow.sleep(1000)
    return "late"


@workflow.defn(name="client.Parked")
class Parked:
    def __init__(self) -> None:
        self.count = 0

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def poke(self) -> None:
        self.count += 1

    @workflow.query
    def pokes(self) -> int:
        return self.count


@workflow.defn(name="client.Leaver", signals={"word": str})
class Leaver:
    def __init__(self) -> None:
        self.seen: list[str] = []

    @workflow.run
    async def run(self) -> str:
        self.seen.append(await workflow.wait_for_signal("word", str))
        return self.seen[0]

    @workflow.query
    def words(self) -> list[str]:
        return self.seen


@workflow.defn(name="client.Broken")
class Broken:
    @workflow.run
    async def run(self) -> None:
        raise NotImplementedError

    @workflow.query
    def state(self) -> str:
        return "fine"


@workflow.defn(name="client.BreaksLater")
class BreaksLater:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_for_signal("go")
        raise NotImplementedError

    @workflow.query
    def state(self) -> str:
        return "waiting"
