"""What the workers of these tests know: an activity that waits for the test to let it go on."""

import os
import time
from pathlib import Path

from celery import Celery

from orchestrator import Orchestrator, activity, workflow

app = Celery("plugin", broker=os.environ.get("BROKER_URL", "memory://"))
app.conf.update(
    broker_connection_retry_on_startup=True,
    orchestrator_database_url=os.environ.get("DATABASE_URL", "sqlite://"),
    orchestrator_sweep_interval=0.2,
    orchestrator_liveness_interval=0.5,
    orchestrator_liveness_timeout=3,
    orchestrator_resend_after=3,
)
durable = Orchestrator(app)


@activity.defn
def pc_pack(order: str) -> str:
    return f"{order} packed"


@activity.defn(start_to_close_timeout=60)
def pc_wait_for(path: str) -> int:
    """Returns the number of the attempt that saw the file appear."""
    Path(f"{path}.started").touch()
    while not Path(path).exists():
        time.sleep(0.05)
    return activity.info().attempt


@workflow.defn
async def pc_ship(order: str) -> str:
    return await pc_pack.execute(order)


@workflow.defn
async def pc_wait(path: str) -> list[object]:
    return [await pc_wait_for.execute(path), await pc_pack.execute("order-42")]
