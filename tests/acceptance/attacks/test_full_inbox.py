"""A run whose inbox holds more than one decision drains."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orchestrator import workflow
from orchestrator.engine import decision
from orchestrator.model.records import Attention, RunStatus
from tests.conformance.engine.world import World


@workflow.defn(name="attacks.full_inbox.broken")
class Broken:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def poke(self, value: int) -> None:
        raise TypeError("not written yet")


def test_a_blocked_run_behind_a_full_inbox_can_be_terminated(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world()
    monkeypatch.setattr(decision, "DRAIN_ROWS", 5)
    world.start("attacks.full_inbox.broken")
    world.decisions()
    for number in range(12):
        world.signal("poke", number)
    world.decisions()
    assert world.run().attention is Attention.BLOCKED
    world.terminate()
    assert world.status() is RunStatus.TERMINATED
    assert world.run().attention is Attention.NONE
    assert world.inbox() == []
    assert sum("signal" in kind.lower() for kind in world.kinds()) == 12
