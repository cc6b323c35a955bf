"""What workflow authors use of asyncio works as it is, in one order."""

from __future__ import annotations

import asyncio
from asyncio import as_completed  # imported by name on purpose: its order must hold then too
from typing import Any

import pytest

from orchestrator.errors import ActivityError
from orchestrator.model import commands as cmd
from tests.unit.runtime.harness import Run, act


def test_a27_gather_gives_results_in_call_order() -> None:
    async def parallel() -> list[str]:
        return list(await asyncio.gather(act("a"), act("b"), act("c")))

    run = Run(parallel)
    assert [c.name for c in run.start() if isinstance(c, cmd.ScheduleActivity)] == ["a", "b", "c"]
    run.complete(3, "C")
    run.complete(1, "A")
    run.complete(2, "B")
    assert run.result == ["A", "B", "C"]


def test_a27_gather_raises_the_first_error_and_the_others_go_on() -> None:
    async def parallel() -> str:
        try:
            await asyncio.gather(act("a"), act("b"))
        except ActivityError as error:
            return error.activity
        return "?"

    run = Run(parallel)
    run.start()
    run.fail(2)
    assert run.result == "b"
    assert run.of(cmd.CancelActivity) == []


def test_gather_can_return_exceptions() -> None:
    async def parallel() -> list[str]:
        results = await asyncio.gather(act("a"), act("b"), return_exceptions=True)
        return [type(result).__name__ for result in results]

    run = Run(parallel)
    run.start()
    run.fail(1)
    run.complete(2, "B")
    assert run.result == ["ActivityError", "str"]


def test_a_task_group_cancels_the_siblings_of_a_failed_task_in_order_of_creation() -> None:
    async def one(name: str) -> None:
        await act(name)

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            for index in range(9):
                tasks.create_task(one(f"a{index}"))

    run = Run(group)
    run.start()
    run.fail(5)
    assert [command.target for command in run.of(cmd.CancelActivity)] == [1, 2, 3, 4, 6, 7, 8, 9]
    assert run.failure.type == "ExceptionGroup"
    assert [member.type for member in run.failure.extra] == ["ActivityError"]


def test_wait_gives_sets_that_iterate_in_order_of_creation() -> None:
    async def waits() -> list[str]:
        tasks = [asyncio.create_task(asyncio.sleep(0, name), name=name) for name in "abcdefgh"]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        while pending:
            more, pending = await asyncio.wait(pending)
            done |= more
        return [task.get_name() for task in done]

    run = Run(waits)
    run.start()
    assert run.result == list("abcdefgh")


def test_sets_of_gathered_futures_iterate_in_the_order_they_were_put_in() -> None:
    async def waits() -> list[int]:
        gathered = [asyncio.gather(asyncio.sleep(0, index)) for index in range(6)]
        done, _ = await asyncio.wait(gathered)
        return [future.result()[0] for future in done]

    run = Run(waits)
    run.start()
    assert run.result == list(range(6))


@pytest.mark.parametrize("made", [list, tuple, iter])
def test_as_completed_starts_bare_coroutines_in_argument_order(made: Any) -> None:
    async def one(name: str) -> str:
        return str(await act(name))

    async def in_order() -> list[str]:
        return [await first for first in as_completed(made([one(name) for name in "abcdefghij"]))]

    run = Run(in_order)
    assert [c.name for c in run.start() if isinstance(c, cmd.ScheduleActivity)] == list("abcdefghij")
    order = [7, 3, 10, 1, 2, 4, 5, 6, 8, 9]
    for number in order:
        run.complete(number, number)
    assert run.result == [str(number) for number in order]


def test_as_completed_refuses_a_set_of_coroutines_and_takes_a_set_of_tasks() -> None:
    async def both() -> list[Any]:
        tasks = {asyncio.create_task(asyncio.sleep(0, index)) for index in range(4)}
        results: list[Any] = [await first for first in as_completed(tasks)]
        try:
            list(as_completed({asyncio.sleep(0)}))
        except Exception as error:
            results.append(type(error).__name__)
        return results

    run = Run(both)
    run.start()
    assert run.result == [0, 1, 2, 3, "InsideWorkflow"]


def test_as_completed_outside_of_workflows_is_as_it_was() -> None:
    async def host() -> set[int]:
        alone = asyncio.sleep(0)
        with pytest.raises(TypeError):
            list(asyncio.as_completed(alone))  # type: ignore[arg-type]
        await alone
        return {await first for first in asyncio.as_completed({asyncio.sleep(0, 1), asyncio.sleep(0, 2)}, timeout=5)}

    assert asyncio.run(host()) == {1, 2}


def test_event_lock_semaphore_condition_and_queue_work() -> None:
    async def workers() -> list[str]:
        log: list[str] = []
        lock, semaphore, gate = asyncio.Lock(), asyncio.Semaphore(2), asyncio.Event()
        changed, queue = asyncio.Condition(), asyncio.Queue[str](maxsize=1)

        async def worker(name: str) -> None:
            await gate.wait()
            async with semaphore:
                await act(name)
            async with lock:
                await queue.put(name)

        async def collector() -> None:
            while len(log) < 3:
                log.append(await queue.get())
            async with changed:
                changed.notify_all()

        async with asyncio.TaskGroup() as group:
            group.create_task(collector())
            for name in "abc":
                group.create_task(worker(name))
            gate.set()
            async with changed:
                await changed.wait_for(lambda: len(log) == 3)
        return log

    run = Run(workers)
    run.start()
    assert run.instance.open_activities == {1: "a", 2: "b"}
    run.complete(2)
    assert run.instance.open_activities == {1: "a", 3: "c"}
    run.complete(3)
    run.complete(1)
    assert run.result == ["b", "c", "a"]


def test_shield_keeps_an_activity_running() -> None:
    async def shielded() -> str:
        work = asyncio.ensure_future(act("work"))
        try:
            await asyncio.wait_for(asyncio.shield(work), 5)
        except TimeoutError:
            return f"late but {await work}"
        return "?"

    run = Run(shielded)
    run.start()
    run.fire(2)
    assert run.of(cmd.CancelActivity) == []
    run.complete(1, "done")
    assert run.result == "late but done"


def test_wait_for_cancels_the_activity_that_is_late() -> None:
    async def limited() -> str:
        try:
            await asyncio.wait_for(act("slow"), 5)
        except TimeoutError:
            return "late"
        return "?"

    run = Run(limited)
    run.start()
    issued = run.fire(2)
    assert isinstance(issued[0], cmd.CancelActivity)
    assert issued[0].target == 1
    assert run.result == "late"


def test_async_generators_and_context_managers_work() -> None:
    from contextlib import aclosing, asynccontextmanager

    log: list[str] = []

    @asynccontextmanager
    async def step(name: str) -> Any:
        await act(f"open {name}")
        try:
            yield name
        finally:
            await act(f"close {name}")

    async def names() -> Any:
        try:
            for name in "ab":
                await act(f"next {name}")
                yield name
        finally:
            log.append("generator closed")

    async def uses() -> str:
        async with aclosing(names()) as all_names:
            async for name in all_names:
                async with step(name):
                    if name == "b":
                        break
        return "done"

    run = Run(uses)
    run.start()
    for number in range(1, 7):
        run.complete(number)
    assert run.result == "done"
    assert [c.name for c in run.of(cmd.ScheduleActivity)] == [
        "next a",
        "open a",
        "close a",
        "next b",
        "open b",
        "close b",
    ]
    assert log == ["generator closed"]
