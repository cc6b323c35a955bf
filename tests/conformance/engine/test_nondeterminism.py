"""PARITY A13, A16, A20, F06, F14: code that asks for something else than history holds blocks the run.

Each case runs a first version of the code up to its first wait, then lets a second version replay it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from orchestrator import workflow
from orchestrator.model.records import Attention, RunStatus
from tests.conformance.engine.world import World

Code = Callable[[], Awaitable[object]]
current: list[Code] = []


@workflow.defn(name="nondeterminism.subject", signals={"go": str, "stop": str})
async def subject() -> object:
    await current[0]()
    return "done"


async def activity() -> object:
    return await workflow.execute_activity("step", args=[1], queue="a")


async def other_name() -> object:
    return await workflow.execute_activity("other", args=[1], queue="a")


async def other_input() -> object:
    return await workflow.execute_activity("step", args=[2], queue="a")


async def other_queue() -> object:
    return await workflow.execute_activity("step", args=[1], queue="b")


async def timer() -> None:
    await asyncio.sleep(60)


async def other_timer() -> None:
    await asyncio.sleep(61)


async def deadline() -> None:
    await workflow.sleep_until(workflow.now() + timedelta(seconds=60))


async def other_deadline() -> None:
    await workflow.sleep_until(workflow.now() + timedelta(seconds=61))


async def wait() -> str:
    return await workflow.wait_for_signal("go", str)


async def other_wait() -> str:
    return await workflow.wait_for_signal("stop", str)


async def nothing() -> None:
    await workflow.wait_condition(lambda: False)


async def both() -> None:
    await asyncio.gather(activity(), timer())


async def both_swapped() -> None:
    await asyncio.gather(timer(), activity())


async def returns() -> None:
    return None


CHANGES: list[tuple[str, Code, Code, str]] = [
    ("a13_name", activity, other_name, "other"),
    ("a13_input", activity, other_input, "step"),
    ("a13_queue", activity, other_queue, "b"),
    ("a20_duration", timer, other_timer, "61"),
    ("f14_deadline", deadline, other_deadline, "TimerStarted"),
    ("f06_a16_wait_name", wait, other_wait, "stop"),
    ("kind", activity, timer, "ActivityScheduled"),
    ("order", both, both_swapped, "ActivityScheduled"),
    ("missing", activity, nothing, "ActivityScheduled"),
    ("surplus", activity, both, "Timer"),
    ("early_return", activity, returns, "ActivityScheduled"),
]


@pytest.mark.parametrize(("old", "new", "told"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_changed_code_blocks_the_run_and_the_old_code_unblocks_it(
    world: World, old: Code, new: Code, told: str
) -> None:
    world.functions["step"] = lambda value: value
    current[:] = [old]
    world.start("nondeterminism.subject")
    world.decisions()
    before = world.events()

    current[:] = [new]
    world.signal("go", "x")
    world.decisions()
    run = world.run()
    assert (run.status, run.attention) == (RunStatus.RUNNING, Attention.BLOCKED)
    assert world.events() == before
    message = world.failure()
    assert message.startswith("NondeterminismError")
    assert told in message
    assert "event" in message

    current[:] = [old]
    world.tick(timedelta(seconds=2))
    world.decisions()
    assert world.run().attention is Attention.NONE
    world.tick(timedelta(seconds=61))
    world.work()
    assert world.result() == "done"


def test_a_queue_that_workflow_code_did_not_write_may_change(world: World) -> None:
    async def unrouted() -> object:
        return await workflow.execute_activity("step", args=[1])

    world.functions["step"] = lambda value: value
    current[:] = [unrouted]
    world.start("nondeterminism.subject")
    world.decisions()
    world.transport._default_queue = "moved"
    world.work()
    assert world.result() == "done"
