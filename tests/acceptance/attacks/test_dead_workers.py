"""Workers that were killed leave nothing behind for ever."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from orchestrator.engine.attempts import WorkerIdentity
from orchestrator.store import workers
from tests.conformance.engine.world import ME, World


def known(world: World) -> set[str]:
    with world.db.read() as conn:
        return {worker.worker_id for worker in workers.all(conn)}


def test_killed_workers_are_forgotten_after_a_while_and_may_come_back(
    make_world: Callable[..., World],
) -> None:
    world = make_world(liveness_timeout=timedelta(seconds=1))
    dead = [WorkerIdentity(worker_id=f"dead-{number}", pid=number, pid_started=1) for number in range(5)]
    world.tick()
    for worker in dead:
        world.alive(worker)
    for _ in range(5):
        world.tick()
    assert len(known(world)) == 6
    for _ in range(10):
        world.tick()
    assert known(world) == {ME.worker_id}
    world.alive(dead[0])
    world.tick(timedelta(seconds=1))
    assert known(world) == {ME.worker_id, dead[0].worker_id}
