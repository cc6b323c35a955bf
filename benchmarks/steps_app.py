"""The app that the worker of benchmarks/steps.py runs: the same step as a bare task and as an activity."""

from __future__ import annotations

import os
import time
from pathlib import Path

from celery import Celery

from orchestrator import Orchestrator, activity, workflow

LOG = Path(os.environ.get("BENCH_LOG", "/nowhere"))
STEPS = 10

app = Celery("bench", broker=os.environ.get("BROKER_URL", "memory://"))
app.conf.orchestrator_database_url = os.environ.get("DATABASE_URL", "sqlite://")
app.conf.task_ignore_result = True
app.conf.task_routes = {"bench_bare": {"queue": "bench"}, "bench_step": {"queue": "bench"}}
durable = Orchestrator(app)


def note(name: str) -> None:
    """Notes that a step of a program began now; one write, so that lines of several processes do not mix."""
    descriptor = os.open(LOG, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(descriptor, f"{name} {time.time()}\n".encode())
    os.close(descriptor)


@app.task(name="bench_bare")
def bench_bare(step: int, name: str) -> int:
    note(name)
    return step + 1


@activity.defn
def bench_step(step: int, name: str) -> int:
    note(name)
    return step + 1


@workflow.defn(queue="bench")
async def bench_flow(name: str) -> int:
    step = 0
    for _ in range(STEPS):
        step = await bench_step.execute(step, name)
    return step
