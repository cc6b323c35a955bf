"""Urgent work overtakes other work: what was overtaken waits, it is not lost, and is not sent again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator import activity, workflow
from orchestrator.engine import attempts
from orchestrator.transport.messages import RunActivity
from tests.conformance.engine.world import World


@activity.defn(name="attacks.overtaking.step", schedule_to_close_timeout=timedelta(days=1))
def step() -> None: ...


@workflow.defn(name="attacks.overtaking.one")
async def one(priority: int | None) -> None:
    await step.with_options(priority=priority).execute()


@pytest.mark.parametrize("waiting", [0, 4, None])
def test_work_that_was_overtaken_is_not_sent_again_until_its_own_kind_has_gone_by(
    world: World, monkeypatch: pytest.MonkeyPatch, waiting: int | None
) -> None:
    world.start("attacks.overtaking.one", waiting, id="overtaken")
    world.next_attempt()
    monkeypatch.setattr(world.transport, "depth", lambda queue: 5)
    for number in range(3):
        claim(world, f"urgent{number}", 9)
        assert sent_again(world) == []
    claim(world, "same", waiting)
    assert [message.workflow_id for message in sent_again(world)] == ["overtaken"]


def claim(world: World, id: str, priority: int | None) -> None:
    """Some work that comes later is done first."""
    world.tick(timedelta(seconds=5))
    world.start("attacks.overtaking.one", priority, id=id)
    attempts.complete(world.engine, world.claimed(), world.encode(None))


def sent_again(world: World) -> list[RunActivity]:
    world.tick(timedelta(minutes=11))
    messages = []
    while (message := world.transport.pop()) is not None:
        if isinstance(message, RunActivity) and message.workflow_id == "overtaken":
            messages.append(message)
    return messages
