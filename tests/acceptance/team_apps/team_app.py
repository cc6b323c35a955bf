"""A team's Celery app whose settings are the test's: JSON in the environment, beside the places of the services."""

import json
import os
from pathlib import Path
from typing import Any

from celery import Celery, Task

from orchestrator import Orchestrator, activity, workflow

EFFECTS = Path(os.environ.get("EFFECTS_DIR", "/nowhere"))


class AuditedTask(Task):
    """The team's own base: it keeps a book of all that succeeded."""

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        with (EFFECTS / "audit").open("a") as file:
            file.write(f"{self.name} {retval}\n")


def make_app() -> Celery:
    settings = json.loads(os.environ.get("TEAM_SETTINGS", "{}"))
    task_cls = AuditedTask if settings.pop("audited", False) else Task
    app = Celery("team", broker=os.environ.get("BROKER_URL", "memory://"), task_cls=task_cls)
    app.conf.broker_connection_retry_on_startup = True
    app.conf.orchestrator_database_url = os.environ.get("DATABASE_URL", "sqlite://")
    app.conf.orchestrator_sweep_interval = 0.5
    app.conf.update(settings)
    return app


app = make_app()
durable = Orchestrator(app)


@activity.defn
def ta_reserve(order: str) -> str:
    return f"{order} reserved"


@activity.defn
def ta_charge(order: str, cents: int) -> int:
    return cents * 2


@workflow.defn
async def ta_fulfil(order: str, cents: int) -> list[Any]:
    return [await ta_reserve.execute(order), await ta_charge.execute(order, cents)]


@app.task(name="ta_plain")
def ta_plain(value: int) -> int:
    """A task of the team that has nothing to do with workflows."""
    return value + 1
