"""The event loop itself: what it refuses, and how it leaves the thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.errors import InsideWorkflow, NotInWorkflow
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from orchestrator.runtime.context import current, maybe_current, refuse_inside_workflow
from orchestrator.runtime.refusals import SUBSTITUTES
from tests.unit.runtime.harness import Run, act


@pytest.mark.parametrize("method", sorted(SUBSTITUTES))
def test_a_way_to_the_outside_is_refused_with_the_name_of_its_substitute(method: str) -> None:
    async def reaches_out() -> str:
        loop = asyncio.get_running_loop()
        with pytest.raises(InsideWorkflow) as caught:
            getattr(loop, method)(None, None)
        return str(caught.value)

    run = Run(reaches_out)
    run.start()
    assert method in run.result
    assert SUBSTITUTES[method] in run.result


def test_every_method_of_an_event_loop_is_either_built_or_refused() -> None:
    async def missing() -> list[str]:
        loop = type(asyncio.get_running_loop())
        names = [name for name in vars(asyncio.AbstractEventLoop) if not name.startswith("_")]
        return [name for name in names if getattr(loop, name) is getattr(asyncio.AbstractEventLoop, name)]

    run = Run(missing)
    run.start()
    assert run.result == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: asyncio.to_thread(print),
        lambda: asyncio.open_connection("localhost", 1),
        lambda: asyncio.create_subprocess_exec("true"),
        lambda: asyncio.get_running_loop().getaddrinfo("localhost", 1),
    ],
)
def test_asyncio_functions_that_reach_outside_are_refused(call: Callable[[], Any]) -> None:
    async def reaches_out() -> str:
        try:
            await call()
        except InsideWorkflow as error:
            return str(error)
        return "done"

    run = Run(reaches_out)
    run.start()
    assert "activity" in run.result


def test_client_calls_are_refused_inside_and_name_the_substitute() -> None:
    async def calls_out() -> list[str]:
        said = []
        for call in ("durable.start", "handle.aresult()", "durable.list"):
            try:
                refuse_inside_workflow(call)
            except InsideWorkflow as error:
                said.append(str(error))
        return said

    refuse_inside_workflow("durable.start")
    run = Run(calls_out)
    run.start()
    assert [text.split(" ")[0] for text in run.result] == ["durable.start", "handle.aresult()", "durable.list"]
    assert all("activity" in text for text in run.result)


def test_calls_of_workflow_code_are_refused_outside() -> None:
    for call in (
        workflow.now,
        workflow.uuid4,
        workflow.random,
        workflow.info,
        lambda: workflow.side_effect(int),
        current,
    ):
        with pytest.raises(NotInWorkflow, match="inside running workflow code"):
            call()
    for coroutine in (workflow.sleep(1), workflow.wait_for_signal("x"), workflow.wait_condition(lambda: True)):
        with pytest.raises(NotInWorkflow):
            coroutine.send(None)
    assert not workflow.in_workflow()


def test_the_hosts_running_loop_and_task_are_put_back() -> None:
    async def simple() -> bool:
        await asyncio.sleep(1)
        return workflow.in_workflow() and asyncio.current_task() is not None

    async def host() -> bool:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        run = Run(simple)
        run.start()
        assert (asyncio.get_running_loop(), asyncio.current_task()) == (loop, task)
        await asyncio.sleep(0)
        run.fire(1)
        assert (asyncio.get_running_loop(), asyncio.current_task()) == (loop, task)
        assert maybe_current() is None
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        return bool(run.result)

    assert asyncio.run(host())


def test_the_hosts_loop_is_put_back_when_the_code_raises_out_of_the_loop() -> None:
    async def interrupted() -> None:
        raise KeyboardInterrupt

    async def host() -> bool:
        loop = asyncio.get_running_loop()
        with pytest.raises(KeyboardInterrupt):
            Run(interrupted).start()
        return asyncio.get_running_loop() is loop and maybe_current() is None

    assert asyncio.run(host())


def test_runs_are_advanced_in_several_threads_at_once_without_mixing() -> None:
    barrier = threading.Barrier(4)
    results: dict[str, Any] = {}

    async def busy() -> str:
        barrier.wait(timeout=20)
        for index in range(200):
            asyncio.create_task(asyncio.sleep(0))  # noqa: RUF006 - the loop holds it
            if index % 50 == 0:
                await act(workflow.info().run_id)
            else:
                await asyncio.sleep(0)
        return workflow.info().run_id

    def drive(run_id: str) -> None:
        run = Run(busy, run_id=run_id)
        run.start()
        number = 1
        while not run.closed:
            run.complete(number)
            number += 1
        results[run_id] = (run.result, {c.name for c in run.of(cmd.ScheduleActivity)})

    threads = [threading.Thread(target=drive, args=(f"run-{index}",)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == {f"run-{index}": (f"run-{index}", {f"run-{index}"}) for index in range(4)}


def test_host_context_variables_do_not_leak_into_workflow_code() -> None:
    import contextvars

    variable = contextvars.ContextVar("variable", default="unset")

    async def reads() -> list[str]:
        first = variable.get()
        variable.set("inner")
        await asyncio.sleep(1)
        return [first, variable.get()]

    variable.set("host")
    run = Run(reads)
    run.start()
    variable.set("host again")
    run.fire(1)
    assert run.result == ["unset", "inner"]
    assert variable.get() == "host again"


def test_an_error_that_nobody_awaits_is_logged_once_and_not_in_replay(caplog: pytest.LogCaptureFixture) -> None:
    def bad() -> None:
        raise ValueError("from a callback")

    async def careless() -> str:
        asyncio.get_running_loop().call_soon(bad)
        await asyncio.sleep(1)
        return "fine"

    run = Run(careless)
    run.start()
    assert [record.exc_info[1].args for record in caplog.records if record.exc_info] == [("from a callback",)]
    run.restart()
    run.fire(1)
    assert len(caplog.records) == 1
    assert run.result == "fine"


def test_unnamed_tasks_are_named_by_their_number_in_the_run() -> None:
    async def names() -> list[str]:
        tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(2)]
        return [task.get_name() for task in tasks]

    first, second = Run(names), Run(names)
    first.start()
    second.start()
    assert first.result == second.result


def test_an_activation_in_a_stopped_run_is_refused() -> None:
    async def ends() -> None:
        return None

    run = Run(ends)
    run.start()
    assert not run.instance.is_open(ev.CancelRequested(reason=""))
    assert not run.instance.is_open(ev.SignalReceived(name="x", signal_id="1", payload=b""))


def test_the_loop_stops_at_once_when_run_returns() -> None:
    async def leaves_work() -> str:
        asyncio.create_task(_schedules())  # noqa: RUF006 - the loop holds it
        act("before")
        return "done"

    async def _schedules() -> None:
        act("after")

    run = Run(leaves_work)
    issued = run.start()
    assert [type(command).__name__ for command in issued] == ["ScheduleActivity", "CompleteRun"]


def test_an_error_of_a_task_that_nobody_awaits_is_logged_once_with_ids(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise ValueError("unseen")

    async def careless() -> str:
        task = asyncio.create_task(fails(), name="background")
        await asyncio.sleep(1)
        await asyncio.sleep(1)
        try:
            await task
        except ValueError as error:
            return f"seen at last: {error}"
        return "?"

    run = Run(careless)
    run.start()
    for number in (1, 2):
        run.restart()
        run.fire(number)
    assert run.result == "seen at last: unseen"
    run.replayed()
    (record,) = caplog.records
    assert "background ended with an error" in record.getMessage()
    assert record.run_id == "run-1"  # type: ignore[attr-defined]
    assert record.exc_info is not None
