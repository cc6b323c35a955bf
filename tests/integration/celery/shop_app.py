"""The app that the workers of these tests run: configured by the environment, effects are lines of files."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from celery import Celery, Task, shared_task
from celery.exceptions import Ignore, Reject
from pydantic import BaseModel

from orchestrator import ActivityError, Orchestrator, RetryPolicy, activity, workflow

EFFECTS = Path(os.environ.get("EFFECTS_DIR", "/nowhere"))

app = Celery("shop", broker=os.environ.get("BROKER_URL", "memory://"))
app.conf.update(
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=1,
    orchestrator_database_url=os.environ.get("DATABASE_URL", "sqlite://"),
    orchestrator_sweep_interval=0.2,
    orchestrator_liveness_interval=0.5,
    orchestrator_liveness_timeout=3,
    orchestrator_resend_after=3,
)
if visibility := os.environ.get("VISIBILITY_TIMEOUT"):
    app.conf.broker_transport_options = {"visibility_timeout": int(visibility)}
durable = Orchestrator(app)

QUICK = RetryPolicy(initial_interval=timedelta(milliseconds=50), maximum_attempts=5)


def note(name: str, text: object = "") -> int:
    """Appends a line to an effect's file; returns how many lines there are now."""
    path = EFFECTS / name
    with path.open("a") as file:
        file.write(f"{text}\n")
    return len(path.read_text().splitlines())


class Money(BaseModel):
    cents: int
    currency: str = "EUR"


# --- activities -----------------------------------------------------------------------------------


@activity.defn
def it_add(left: int, right: int) -> int:
    return left + right


@activity.defn
async def it_later(amount: Money) -> Money:
    await asyncio.sleep(0.01)
    return Money(cents=amount.cents * 2, currency=amount.currency)


@activity.defn(retry_policy=QUICK)
def it_flaky(name: str) -> str:
    if note(name, activity.info().attempt) < 3:
        raise OSError("not yet")
    return f"attempt {activity.info().attempt}"


@activity.defn(retry_policy=QUICK)
def it_dies(name: str, how: str, times: int) -> str:
    info = activity.info()
    if note(name, f"{info.attempt} {os.getpid()}") <= times:
        die(how)
    return f"attempt {info.attempt}"


def die(how: str) -> None:
    if how == "exit":
        os._exit(0)
    if how == "sysexit":
        raise SystemExit(3)
    os.kill(os.getppid() if how == "parent" else os.getpid(), signal.SIGKILL)
    time.sleep(60)


@activity.defn(start_to_close_timeout=1, retry_policy=QUICK)
def it_slow_at_first(name: str) -> str:
    if note(name, os.getpid()) == 1:
        time.sleep(8)
        note(f"{name}.late")
        return "old"
    return "new"


@activity.defn(heartbeat_timeout=timedelta(seconds=30))
def it_watchful(name: str, seconds: float = 30) -> str:
    done = activity.info().heartbeat_details(int) or 0
    note(name, f"from {done}")
    for step in range(done, int(seconds * 20)):
        try:
            activity.heartbeat(step)
        except activity.Cancelled:
            note(f"{name}.cancelled", step)
            raise
        time.sleep(0.05)
    return "finished"


@activity.defn
def it_counts_heartbeats(name: str) -> int:
    done = activity.info().heartbeat_details(int) or 0
    if done:
        return done
    activity.heartbeat(7)
    note(name)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


@activity.defn
def it_sleeps(name: str, seconds: float) -> int:
    count = note(name)
    time.sleep(float(os.environ.get("SLEEP", seconds)))
    return count


@activity.defn
def it_asks_celery_to_retry(amount: Money, name: str) -> int:
    if note(name, amount) < 3:
        raise it_asks_celery_to_retry.retry(countdown=0.1)
    return amount.cents


@activity.defn(start_to_close_timeout=30)
def it_outlasts_the_broker(name: str) -> int:
    time.sleep(6)
    return note(name)


@activity.defn
def it_unstorable() -> dict[str, Any]:
    return {"answer": {"deep": object()}}


@activity.defn
def it_facts() -> dict[str, Any]:
    info = activity.info()
    return {
        "in_workflow": activity.in_workflow(),
        "workflow_id": info.workflow_id,
        "workflow_type": info.workflow_type,
        "number": info.number,
        "attempt": info.attempt,
        "key": info.idempotency_key,
        "task_id": info.task_id,
    }


# --- existing Celery tasks, untouched -------------------------------------------------------------


@app.task(bind=True, max_retries=5)
def lg_retry(self, name, times):
    if note(name, self.request.retries) <= times:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task(autoretry_for=(OSError,), default_retry_delay=0.1, retry_kwargs={"max_retries": 3, "countdown": 0.1})
def lg_autoretry(name, times):
    if note(name) <= times:
        raise OSError("again")
    return "done"


@app.task(bind=True)
def lg_changes_arguments(self, count):
    if count < 3:
        raise self.retry(args=(count + 1,), countdown=0)
    return count


@app.task(rate_limit="20/s")
def lg_limited(name):
    note(name, time.time())


@app.task(time_limit=1)
def lg_hard_limit(name):
    note(name)
    time.sleep(20)


@app.task(soft_time_limit=1)
def lg_soft_limit():
    time.sleep(20)


@app.task(pydantic=True)
def lg_pydantic(amount: Money) -> Money:
    return Money(cents=amount.cents + 1, currency=amount.currency)


@shared_task(name="lg_shared")
def lg_shared(left: int, right: int = 10) -> int:
    return left + right


@app.task
def lg_types(when, price):
    return [type(when).__name__, type(price).__name__]


@app.task
def lg_dies(name):
    note(name, os.getpid())
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(acks_late=True, reject_on_worker_lost=True)
def lg_dies_once(name):
    if note(name) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


@app.task
def lg_ignores():
    raise Ignore


@app.task(acks_late=True)
def lg_rejects_once(name):
    if note(name) == 1:
        raise Reject("not now", requeue=True)
    return "second time"


class Base(Task):
    def on_success(self, retval, task_id, args, kwargs):
        note(f"{args[0]}.hook", retval)


@app.task(base=Base)
def lg_hooked(name):
    return "hooked"


# --- workflows ------------------------------------------------------------------------------------


@workflow.defn
async def it_three_steps(number: int) -> list[Any]:
    first = await it_add.execute(number, right=1)
    second = await it_later.execute(Money(cents=first))
    third = await activity.of(lg_shared).execute(second.cents)
    return [first, second.cents, third]


@workflow.defn
async def it_one(name: str, args: list[Any], queue: str | None = None) -> Any:
    """Calls one activity or task by its name in this module; an error becomes the answer."""
    target = globals()[name]
    call = target if isinstance(target, activity.Activity) else activity.of(target)
    try:
        return await (call if queue is None else call.with_options(queue=queue)).execute(*args)
    except ActivityError as error:
        return {
            "error": error.type,
            "attempt": error.attempt,
            "cause": type(error.cause).__name__,
            "text": str(error.cause),
        }


@workflow.defn
async def it_many(name: str, args: list[Any], count: int) -> list[Any]:
    call = globals()[name]
    call = call if isinstance(call, activity.Activity) else activity.of(call)
    return list(await asyncio.gather(*(call.execute(*args) for _ in range(count))))


@workflow.defn
async def it_naps(seconds: float) -> str:
    await workflow.sleep(timedelta(seconds=seconds))
    return "rested"


@workflow.defn
async def it_asks(name: str) -> int:
    return await it_asks_celery_to_retry.execute(Money(cents=5), name)


@workflow.defn
async def it_signature(count: int) -> int:
    return int(await workflow.execute_activity(lg_shared.s(count, right=5).set(queue="slow")))


@workflow.defn
async def it_by_name(name: str, args: list[Any]) -> Any:
    return await workflow.execute_activity(name, args=args)


@workflow.defn
async def it_cancels(name: str) -> str:
    running = it_watchful.start(name)
    await workflow.wait_for_signal("stop")
    running.cancel()
    return "cancelled"


@workflow.defn
async def it_typed() -> Any:
    from datetime import UTC, datetime
    from decimal import Decimal

    return await activity.of(lg_types).execute(datetime(2026, 1, 2, tzinfo=UTC), Decimal("1.5"))
