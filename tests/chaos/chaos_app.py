"""The app that the workers of these tests run: configured by the environment, effects go to a ledger."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

from celery import Celery
from celery.signals import worker_process_init

from orchestrator import ActivityError, Orchestrator, RetryPolicy, activity, workflow
from tests.chaos.ledger import Ledger

ledger = Ledger(Path(os.environ.get("LEDGER_DIR", "/nowhere")))

app = Celery("chaos", broker=os.environ.get("BROKER_URL", "memory://"))
app.conf.update(broker_connection_retry_on_startup=True, broker_connection_max_retries=None)
app.conf.update(json.loads(os.environ.get("CHAOS_CONF", "{}")))
durable = Orchestrator(app)

if os.environ.get("CRASH") == "init":

    @worker_process_init.connect
    def crash(**_: object) -> None:
        os._exit(1)


QUICK = RetryPolicy(initial_interval=timedelta(milliseconds=50), maximum_attempts=5)


@activity.defn(start_to_close_timeout=60)
def ch_step(order: str, step: int, pause: float) -> str:
    """Applies one effect, as a payment provider does that knows idempotency keys."""
    ledger.note_execution(f"{order} {step} {activity.info().attempt}")
    time.sleep(pause)
    ledger.apply(f"{order}.{step}", activity.info().idempotency_key)
    return f"{order}.{step}"


@activity.defn(start_to_close_timeout=60)
def ch_held(name: str) -> str:
    """Holds its slot until the test lets it go."""
    ledger.note(name, os.getpid())
    while not ledger.lines(f"{name}.release"):
        time.sleep(0.05)
    return name


@activity.defn(start_to_close_timeout=60, retry_policy=QUICK)
def ch_killer(name: str) -> str:
    """Kills its process, whatever attempt it is."""
    ledger.note(name, activity.info().attempt)
    os.kill(os.getpid(), signal.SIGKILL)
    return name


@activity.defn(start_to_close_timeout=2, retry_policy=QUICK)
def ch_zombie(name: str) -> str:
    """Its first attempt comes back after its time."""
    if len(ledger.note(name, activity.info().attempt)) == 1:
        try:
            for step in range(60):
                activity.heartbeat(step)
                time.sleep(0.1)
        except activity.Cancelled:
            ledger.note(f"{name}.told")
        ledger.note(f"{name}.late")
        return "old"
    time.sleep(1)
    return "new"


@workflow.defn
async def ch_order(order: str, pause: float) -> list[str]:
    """Ten activities: three in a row, four at once, three in a row."""
    done = [await ch_step.execute(order, step, pause) for step in range(3)]
    done += await asyncio.gather(*(ch_step.execute(order, step, pause) for step in range(3, 7)))
    for step in range(7, 10):
        done.append(await ch_step.execute(order, step, pause))
    return done


@workflow.defn
async def ch_fan(order: str, count: int, queue: str) -> int:
    """Many activities at once on one queue."""
    step = ch_step.with_options(queue=queue)
    return len(await asyncio.gather(*(step.execute(order, number, 0) for number in range(count))))


@workflow.defn
async def ch_hold(name: str) -> str:
    return await ch_held.execute(name)


@workflow.defn
async def ch_hold_then_fan(name: str, count: int, queue: str) -> int:
    await ch_held.execute(name)
    step = ch_step.with_options(queue=queue)
    return len(await asyncio.gather(*(step.execute(name, number, 0) for number in range(count))))


@workflow.defn
async def ch_kills(name: str) -> str:
    try:
        return await ch_killer.execute(name)
    except ActivityError as error:
        return type(error.cause).__name__


@workflow.defn
async def ch_nap(name: str, seconds: float) -> str:
    await workflow.sleep(seconds)
    ledger.note(f"{name}.woke", time.time())
    return "rested"


@workflow.defn(signals={"go": str})
async def ch_waits() -> str:
    return await workflow.wait_for_signal("go", str)


@workflow.defn
async def ch_zombies(name: str) -> str:
    return await ch_zombie.execute(name)


@workflow.defn
async def ch_times_out(order: str, queue: str, seconds: float) -> str:
    """An activity that no worker may take in time."""
    step = ch_step.with_options(queue=queue, schedule_to_start_timeout=timedelta(seconds=seconds))
    try:
        return await step.execute(order, 0, 0)
    except ActivityError as error:
        return f"{type(error.cause).__name__}: {error.cause}"
