"""Workflow code that spins or blocks: the run is blocked, its slot is free again, others go on."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from orchestrator import workflow
from orchestrator.engine.decision import Outcome, decide
from orchestrator.model.records import Attention, RunStatus
from tests.conformance.engine.world import World

calm = threading.Event()
"""Set once the code is "fixed"."""


@workflow.defn(name="attacks.holds.spins")
async def spins() -> str:
    while not calm.is_set():
        pass
    return "done"


@workflow.defn(name="attacks.holds.spins_and_swallows")
async def spins_and_swallows() -> str:
    try:
        while not calm.is_set():
            pass
    except BaseException:
        pass
    return "done"


@workflow.defn(name="attacks.holds.yields_for_ever")
async def yields_for_ever() -> str:
    while not calm.is_set():  # noqa: ASYNC110 - it is what this is about
        await asyncio.sleep(0)
    return "done"


@workflow.defn(name="attacks.holds.blocks")
async def blocks() -> str:
    calm.wait(60)
    return "done"


@workflow.defn(name="attacks.holds.sleeps")
async def sleeps() -> str:
    time.sleep(5)
    return "done"


@workflow.defn(name="attacks.holds.true_for_ever")
async def true_for_ever() -> str:
    while not calm.is_set():
        await workflow.wait_condition(lambda: True)
    return "done"


@workflow.defn(name="attacks.holds.init")
class Init:
    def __init__(self) -> None:
        while not calm.is_set():
            pass

    @workflow.run
    async def run(self) -> str:
        return "done"


NAMES = ["spins", "spins_and_swallows", "yields_for_ever", "true_for_ever", "init"]


@pytest.fixture
def brisk(make_world: Callable[..., World]) -> World:
    calm.clear()
    return make_world(decision_timeout=timedelta(seconds=0.5))


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "the decider never came back"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["main", "thread"])
def test_code_that_spins_blocks_its_run_and_frees_its_slot(brisk: World, name: str, where: str) -> None:
    run_id = brisk.start(f"attacks.holds.{name}").run.run_id
    began = time.monotonic()
    if where == "main":
        assert decide(brisk.engine, run_id) is Outcome.BLOCKED
    else:
        in_a_thread(lambda: decide(brisk.engine, run_id))
    assert time.monotonic() - began < 15
    run = brisk.run()
    assert (run.status, run.attention) == (RunStatus.PENDING, Attention.BLOCKED)
    assert re.search(r"DecisionTimeout: .*decision_timeout.*", brisk.failure())
    if name in ("spins", "init"):
        assert "test_code_that_holds_on.py" in brisk.failure()
    calm.set()
    brisk.tick(timedelta(minutes=2))
    brisk.decisions()
    assert brisk.result() == "done"


def test_a_blocking_call_in_the_main_thread_is_interrupted(brisk: World) -> None:
    run_id = brisk.start("attacks.holds.blocks").run.run_id
    began = time.monotonic()
    assert decide(brisk.engine, run_id) is Outcome.BLOCKED
    assert time.monotonic() - began < 15
    assert "threading.py" in brisk.failure()


def test_a_blocking_call_elsewhere_blocks_the_run_once_it_returns(brisk: World) -> None:
    run_id = brisk.start("attacks.holds.sleeps").run.run_id
    in_a_thread(lambda: decide(brisk.engine, run_id))  # longer than the database keeps an idle decider's lock
    assert brisk.run().attention is Attention.BLOCKED
    assert "DecisionTimeout" in brisk.failure()


def test_a_run_whose_many_activations_take_long_together_is_not_blamed(make_world: Callable[..., World]) -> None:
    world = make_world(decision_timeout=timedelta(seconds=0.3))
    world.start("attacks.holds.patient", 30)
    for index in range(30):
        world.signal("step", index)
    world.decisions()
    assert world.result() == 30


@workflow.defn(name="attacks.holds.patient")
class Patient:
    def __init__(self) -> None:
        self.seen = 0

    @workflow.run
    async def run(self, count: int) -> int:
        await workflow.wait_condition(lambda: self.seen >= count)
        return self.seen

    @workflow.signal
    def step(self, index: int) -> None:
        time.sleep(0.15)
        self.seen += 1
