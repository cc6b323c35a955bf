"""Dropping a run runs none of its code (scenario 56, protocol rules P3 and P13)."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.errors import NotInWorkflow
from orchestrator.model import commands as cmd
from orchestrator.runtime.disposal import was_interrupted
from tests.unit.runtime.harness import Run, act

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _never_interrupted() -> None:
    """After an interruption a process keeps what it drops (see ``disposal.note_interruption``)."""
    if was_interrupted():
        pytest.skip("a test of the watchdog interrupted code in this process before")


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    RAN.clear()
    yield
    gc.collect()
    assert RAN == []


class Manager:
    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None:
        RAN.append("aexit")


@asynccontextmanager
async def managed() -> AsyncIterator[None]:
    try:
        yield
    finally:
        RAN.append("managed")


async def numbers() -> AsyncIterator[int]:
    try:
        yield 1
        await asyncio.sleep(1)
    finally:
        RAN.append("async generator")


def letters() -> Iterator[str]:
    try:
        yield "a"
    finally:
        RAN.append("generator")


async def paused() -> None:
    held = letters()
    next(held)
    try:
        async with Manager(), managed(), asyncio.timeout(100):
            async for _ in numbers():
                try:
                    await act("work")
                finally:
                    RAN.append("inner")
                    workflow.logger.error("cleaning up")
                    await act("cleanup")
    except BaseException:
        RAN.append("except")
        raise
    finally:
        try:
            RAN.append("outer")
        finally:
            RAN.append("outermost")


async def stubborn() -> None:
    while True:
        try:
            await act("work")
        except BaseException:
            RAN.append("swallowed")


async def grouped() -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(stubborn())
            group.create_task(paused())


async def waiting_for_everything() -> None:
    async def one(wait: Any) -> None:
        try:
            await wait
        finally:
            RAN.append("wait")

    await asyncio.gather(
        one(workflow.wait_for_signal("x", timeout=5)),
        one(workflow.wait_condition(lambda: False, timeout=5)),
        one(workflow.sleep(5)),
        one(asyncio.wait_for(asyncio.Event().wait(), 5)),
        one(asyncio.Queue[int]().get()),
    )


@pytest.mark.parametrize("code", [paused, stubborn, grouped, waiting_for_everything])
@pytest.mark.parametrize("way", ["drop", "dispose", "collect", "another thread"])
def test_no_line_of_a_dropped_run_executes(code: Any, way: str, caplog: pytest.LogCaptureFixture) -> None:
    run = Run(code)
    run.start()
    if way == "dispose":
        run.instance.dispose()
    elif way == "collect":
        cycle: list[Any] = [run.instance]
        cycle.append(cycle)
        del cycle
    elif way == "another thread":
        thread = threading.Thread(target=run.instance.dispose)
        thread.start()
        thread.join(10)
    del run
    gc.collect()
    assert RAN == []
    assert caplog.records == []
    assert sys.gettrace() is None or "coverage" in repr(sys.gettrace())


def test_two_hundred_paused_runs_are_dropped_and_their_memory_comes_back() -> None:
    runs = [Run(paused if index % 2 else stubborn) for index in range(200)]
    for run in runs:
        run.start()
    gone = [weakref.ref(run.instance._execution.loop) for run in runs]
    runs.clear()
    del run
    gc.collect()
    assert [reference for reference in gone if reference() is not None] == []


def test_a_run_dropped_inside_another_runs_activation_leaves_that_one_alone() -> None:
    held = [Run(stubborn), Run(paused)]
    for run in held:
        run.start()
    del run

    async def other() -> str:
        held.clear()
        gc.collect()
        await act("own")
        return "done"

    run = Run(other)
    issued = run.start()
    assert [command.name for command in issued if isinstance(command, cmd.ScheduleActivity)] == ["own"]
    run.complete(1)
    assert run.result == "done"


def test_the_collector_gives_finalizers_no_workflow() -> None:
    tried: list[str] = []

    class Careless:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            try:
                workflow.uuid4()
                act("from the collector")
            except NotInWorkflow:
                tried.append("refused")

    async def makes_garbage() -> str:
        Careless()
        gc.collect()
        return str(workflow.uuid4())

    run = Run(makes_garbage)
    assert [type(command).__name__ for command in run.start()] == ["CompleteRun"]
    assert tried == ["refused"]


def test_a_pending_task_that_nobody_holds_is_not_collected() -> None:
    async def forgets() -> str:
        async def background() -> None:
            try:
                await act("background")
            finally:
                done.append("finished")

        done: list[str] = []
        asyncio.create_task(background())  # noqa: RUF006 - the loop holds it
        await asyncio.sleep(1)
        gc.collect()
        await workflow.wait_condition(lambda: bool(done))
        return done[0]

    run = Run(forgets)
    run.start()
    gc.collect()
    run.fire(1)
    run.complete(2)
    assert run.result == "finished"


def test_an_async_generator_that_is_left_early_is_not_closed_behind_the_authors_back() -> None:
    async def leaves() -> str:
        async for _ in numbers():
            break
        gc.collect()
        await asyncio.sleep(1)
        return "done"

    run = Run(leaves)
    run.start()
    gc.collect()
    run.fire(1)
    assert run.result == "done"


def test_a_closed_run_drops_what_it_left_pending() -> None:
    async def leaves() -> str:
        asyncio.create_task(paused())  # noqa: RUF006 - the loop holds it
        await asyncio.sleep(0)
        return "done"

    run = Run(leaves)
    run.start()
    assert run.result == "done"


def test_a_run_whose_code_is_running_can_not_be_dropped() -> None:
    said: list[str] = []
    runs: list[Run] = []

    async def drops_itself() -> None:
        try:
            runs[0].instance._execution.dispose()
        except RuntimeError as error:
            said.append(str(error))

    runs.append(Run(drops_itself))
    runs[0].start()
    assert runs[0].closed
    assert "in the middle of an activation" in said[0]


def test_objects_with_finalizers_still_run_them() -> None:
    finalized: list[str] = []

    class Resource:
        def __del__(self) -> None:
            def steps() -> Iterator[int]:
                try:
                    yield 1
                    yield 2
                finally:
                    finalized.append("generator")

            for _ in steps():
                pass
            finalized.append("resource")

    async def holds() -> None:
        resource = Resource()
        try:
            await act("work")
        finally:
            RAN.append(str(resource))

    run = Run(holds)
    run.start()
    del run
    gc.collect()
    assert finalized == ["generator", "resource"]


def test_logging_of_dropped_runs_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    run = Run(grouped)
    run.start()
    caplog.clear()
    del run
    gc.collect()
    assert caplog.records == []
