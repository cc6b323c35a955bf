"""The environment in async tests."""

import asyncio
from datetime import timedelta

import pytest

from orchestrator.errors import EnvironmentStuck
from orchestrator.testing import WorkflowEnvironment
from tests.unit.testing import shop


def test_a_run_is_awaited(workflow_environment: WorkflowEnvironment):
    assert asyncio.run(workflow_environment.arun(shop.nap, 3)) == "3 days, 0:00:00"


def test_the_async_twins_of_client_and_handle_work(workflow_environment: WorkflowEnvironment):
    async def story() -> str:
        handle = await workflow_environment.astart(shop.Approval.run, 500, id="approval-7")
        assert await handle.aquery(shop.Approval.pending)
        await handle.asignal(shop.Approval.approve, "ann")
        return await handle.aresult()

    assert asyncio.run(story()) == "500 approved by ann"


def test_blocking_calls_work_inside_a_running_loop(workflow_environment: WorkflowEnvironment):
    async def story() -> str:
        env = workflow_environment
        handle = env.start(shop.fulfil, "42", 999)
        handle.signal("address", "here")
        return handle.result()

    assert asyncio.run(story()) == "sent 42 to here"


def test_several_runs_are_awaited_at_once(workflow_environment: WorkflowEnvironment):
    async def story() -> list[str]:
        return await asyncio.gather(*(workflow_environment.arun(shop.nap, days) for days in (3, 1, 2)))

    assert asyncio.run(story()) == ["3 days, 0:00:00", "1 day, 0:00:00", "2 days, 0:00:00"]


def test_a_signal_of_another_coroutine_comes_in_time(workflow_environment: WorkflowEnvironment):
    async def story() -> str:
        handle = await workflow_environment.astart(shop.Door.run)
        waiting = asyncio.create_task(handle.aresult())
        await asyncio.sleep(0.02)
        await handle.asignal(shop.Door.open)
        return await waiting

    assert asyncio.run(story()) == "open"


def test_a_coroutine_that_waits_for_nothing_is_told_so(workflow_environment: WorkflowEnvironment):
    with pytest.raises(EnvironmentStuck, match=r"kit\.Door"):
        asyncio.run(workflow_environment.arun(shop.Door.run))


def test_an_async_activity_may_use_the_blocking_client(workflow_environment: WorkflowEnvironment):
    env = workflow_environment

    async def effect(order_id: str, cents: int) -> str:
        env.advance(timedelta(seconds=1))
        return env.run(shop.blink)

    env.stub(shop.charge, side_effect=effect)
    assert env.run(shop.pay, "42", 1) == "blinked"
    assert len(env.calls(shop.charge)) == 1


def test_an_async_activity_that_passes_its_time_out_by_a_blocking_call_is_retried(
    workflow_environment: WorkflowEnvironment,
):
    env = workflow_environment

    async def effect(order_id: str, cents: int) -> str:
        if len(env.calls(shop.charge)) == 1:
            env.advance(timedelta(minutes=10))
        await asyncio.sleep(0)
        return f"call {len(env.calls(shop.charge))}"

    env.stub(shop.charge, side_effect=effect)
    assert env.run(shop.pay, "42", 1) == "call 2"
