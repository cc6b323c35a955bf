"""A broker that takes its time to answer holds nothing in the database meanwhile."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from orchestrator import workflow
from orchestrator.engine.decision import Outcome, decide
from tests.conformance.engine.world import World


@workflow.defn(name="attacks.slow_broker.waits", signals={"go": str})
async def waits() -> str:
    return await workflow.wait_for_signal("go", str)


@workflow.defn(name="attacks.slow_broker.works")
async def works() -> str:
    return str(await workflow.execute_activity("work"))


def test_signals_claims_and_decisions_go_on_while_the_sweep_asks_the_broker(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.start("attacks.slow_broker.waits")
    world.decisions()
    world.start("attacks.slow_broker.works", id="works")
    message = world.next_attempt()
    world.start("attacks.slow_broker.waits", id="lost")
    world.transport.pop()
    done: list[str] = []

    def meanwhile() -> None:
        world.signal("go", "x")
        done.append("signal")
        world.claimed(message)
        done.append("claim")
        assert decide(world.engine, world.run("lost").run_id) is Outcome.DECIDED
        done.append("decision")

    other = threading.Thread(target=meanwhile, daemon=True)

    def slow_depth(_queue: str) -> int:
        if not other.ident:
            other.start()
        other.join(3)
        return 0

    monkeypatch.setattr(world.transport, "depth", slow_depth)
    world.tick(timedelta(minutes=1))
    other.join(10)
    assert done == ["signal", "claim", "decision"]
