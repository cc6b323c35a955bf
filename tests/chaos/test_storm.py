"""Workers die every two seconds and every server goes down once: all work is done, each effect once.

`CHAOS_FULL=1` (or `make chaos`) runs the full size with production's own time-outs.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from orchestrator.client import WorkflowHandle
from orchestrator.errors import OrchestratorError, Unavailable
from orchestrator.model.events import ActivityCompleted
from orchestrator.store import history, timers
from tests.chaos.conftest import BRISK, FULL, MakeYard, Yard
from tests.chaos.weather import Restart, WorkerKiller
from tests.support.fixtures.own_servers import ServerFactory
from tests.support.own_server import OwnServer
from tests.support.waiting import wait_until

STEPS = 10
DEADLINE = float(os.environ.get("CHAOS_DEADLINE") or (1500 if FULL else 240))
SETTINGS: dict[str, Any] = {} if FULL else BRISK
PAUSE = 0.02
"""Seconds that each activity takes, so that kills find some at work."""


def size(full: int, small: int) -> int:
    """How many workflows."""
    return int(os.environ.get("CHAOS_WORKFLOWS") or (full if FULL else small))


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE + 120)
def test_all_is_done_once_on_rabbitmq(
    make_yard: MakeYard,
    own_rabbitmq: ServerFactory[OwnServer],
    own_database: OwnServer,
    figure: Callable[[str, str], None],
) -> None:
    broker = own_rabbitmq()
    weather(make_yard(broker.url, own_database.url, **SETTINGS), broker, own_database, size(500, 25), figure)


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE + 120)
def test_all_is_done_once_on_quorum_queues(
    make_yard: MakeYard,
    own_rabbitmq: ServerFactory[OwnServer],
    own_database: OwnServer,
    figure: Callable[[str, str], None],
) -> None:
    broker = own_rabbitmq()
    quorum = {"task_default_queue_type": "quorum", "broker_transport_options": {"confirm_publish": True}}
    yard = make_yard(broker.url, own_database.url, **SETTINGS, **quorum)
    weather(yard, broker, own_database, size(100, 15), figure)


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE + 120)
def test_all_is_done_once_on_a_redis_that_forgets_everything(
    make_yard: MakeYard,
    own_redis: ServerFactory[OwnServer],
    own_database: OwnServer,
    figure: Callable[[str, str], None],
) -> None:
    broker = own_redis()
    weather(make_yard(broker.url, own_database.url, **SETTINGS), broker, own_database, size(100, 15), figure)


def weather(yard: Yard, broker: OwnServer, database: OwnServer, count: int, figure: Callable[[str, str], None]) -> None:
    workers = [yard.worker(wait=False) for _ in range(4)]
    for worker in workers:
        worker.wait_ready(90)
    began = time.monotonic()
    goal = count * STEPS
    restarts = [Restart("broker", broker, goal // 4), Restart("database", database, goal * 3 // 5)]
    with WorkerKiller(workers, spared=0 if FULL else 1) as killer, ThreadPoolExecutor(4) as pool:
        handles = list(pool.map(lambda number: start_somehow(yard, f"o{number}"), range(count)))
        longest = watch_over(yard, restarts, began + DEADLINE, lambda: all_closed(yard))
    took = time.monotonic() - began
    assert killer.errors == []
    check(yard, handles)
    again = len(yard.ledger.lines("executions")) - goal
    figure("done", f"{count} x {STEPS} in {took:.0f} s, {killer.kills} kills, {again} bodies begun again")
    for restart in restarts:
        figure(restart.name, f"away {restart.away:.1f} s, next effect {restart.recovered or 0:.1f} s after its return")
    figure("longest time without any effect", f"{longest:.1f} s")


def start_somehow(yard: Yard, order: str) -> WorkflowHandle[Any, Any]:
    """Starts an order, as a caller does who tries again when told that the database is away."""
    return wait_until(
        lambda: yard.durable.start("ch_order", order, PAUSE, id=order, queue="celery"), 60, ignoring=(Unavailable,)
    )


def watch_over(yard: Yard, restarts: list[Restart], deadline: float, done: Callable[[], bool]) -> float:
    """Restarts servers when it is time, until all is done; returns the longest time in which nothing happened."""
    longest, before, since = 0.0, 0, time.monotonic()
    while time.monotonic() < deadline:
        effects = len(yard.ledger.effects())
        for restart in restarts:
            restart.look(effects, lambda: len(yard.ledger.effects()))
        if effects > before:
            longest = max(longest, time.monotonic() - since)
            before, since = effects, time.monotonic()
        elif done():
            return longest
        time.sleep(0.1)
    pytest.fail(f"not done in time: {before} effects; {story(yard)}")


def all_closed(yard: Yard) -> bool:
    try:
        return not open_runs(yard)
    except OrchestratorError:
        return False


def open_runs(yard: Yard) -> list[Any]:
    found = [yard.durable.list(status=status).items for status in ("PENDING", "RUNNING")]
    return [run for page in found for run in page]


def story(yard: Yard) -> str:
    """What is still open, for the message of a failure."""
    found = open_runs(yard)
    told = (repr(yard.durable.get_handle(run.id).describe()) for run in found[:3])
    return "\n".join([f"{len(found)} open", *told])


def check(yard: Yard, handles: list[WorkflowHandle[Any, Any]]) -> None:
    """Nothing is missing, nothing is doubled, nothing is left over."""
    for handle in handles:
        assert handle.result(timeout=5) == [f"{handle.id}.{step}" for step in range(STEPS)]
    assert yard.ledger.lines("twice") == []
    assert sorted(yard.ledger.effects()) == sorted(f"{h.id}.{step}" for h in handles for step in range(STEPS))
    assert open_runs(yard) == []
    engine = yard.durable.engine()
    with engine.db.read() as conn:
        assert timers.next_due(conn) is None
        for handle in handles:
            events = history.read(conn, handle.run_id)
            outcomes = Counter(event.body.number for event in events if isinstance(event.body, ActivityCompleted))
            assert outcomes == dict.fromkeys(range(1, STEPS + 1), 1)
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
