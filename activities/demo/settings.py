"""What the demo is told on its command line, and what it tells its server processes."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from activities.orders.models import Rules

# The demo cannot wait half a minute for a process to be given up, nor a day for a reminder.
RULES = Rules(remind_after=timedelta(seconds=3), reminders=20)
LIVENESS_TIMEOUT = timedelta(seconds=2)
LIVENESS_INTERVAL = timedelta(milliseconds=500)
RESEND_AFTER = timedelta(milliseconds=500)
THREADS = 4
ARRIVE_WITHIN = timedelta(seconds=6)


class Kind(StrEnum):
    """The two ways the same orders are fulfilled."""

    WORKFLOWS = "workflows"
    CHAINS = "bare chains"


class ServerSettings(BaseModel):
    """Everything a server process needs, given to it as one line of JSON: no password shows in a process list.

    ``directory`` is the demo's temporary directory; ``workflows_url`` and ``shop_url`` are SQLAlchemy URLs;
    ``threads`` is the size of the pool.
    """

    model_config = ConfigDict(frozen=True)

    kind: Kind
    name: str
    broker: str
    queue: str
    workflows_url: str
    shop_url: str
    directory: str
    threads: int


class Options(BaseModel):
    """What the user asked for. No broker and no database means: in memory, and SQLite files."""

    model_config = ConfigDict(frozen=True)

    orders: int = 40
    broker: str | None = None
    database: str | None = None

    @property
    def threads(self) -> int:
        """Threads of each server: enough to keep up with the orders, few enough that steps queue."""
        return max(THREADS, self.orders // 10)
