"""A wake-up that got lost on a queue that is never empty is sent again, once later messages have come."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator import workflow
from orchestrator.engine.wakeups import note_arrival
from orchestrator.model.records import RunStatus
from orchestrator.store import queues
from orchestrator.store.database import Database
from tests.conformance.engine.world import World
from tests.integration.celery.conftest import Shop
from tests.support.waiting import wait_until


@workflow.defn(name="attacks.busy.nap")
async def nap() -> str:
    await workflow.sleep(1)
    return "rested"


def test_decisions_tell_how_far_their_queue_was_consumed(shop: Shop) -> None:
    shop.worker(concurrency=1)
    shop.run("it_naps", 0.1)
    database = Database.open(shop.database)

    def progress() -> int | None:
        with database.read() as conn:
            return queues.progress(conn, ["celery"]).get("celery")

    assert wait_until(progress, 10)
    database.dispose()


def test_a_lost_wake_up_is_sent_again_although_its_queue_is_never_empty(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.start("attacks.busy.nap")
    world.transport.pop()
    monkeypatch.setattr(world.transport, "depth", lambda queue: 5)
    world.tick(timedelta(minutes=5))
    assert world.transport.pop() is None
    note_arrival(world.engine, "celery", world.clock.now())
    for _ in range(12):
        world.tick(timedelta(minutes=1))
        world.decisions()
    assert world.status() is RunStatus.COMPLETED
