"""The two messages this library publishes, and what a transport owes the engine.

A message is only ever a hint that there is work: everything it stands for is a row first (protocol rule
P4). So a transport may lose or double any of them; the sweep re-sends what is due, and a doubled message
finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.types import Attributes, Micros


@dataclass(frozen=True, kw_only=True, slots=True)
class WakeDecision:
    """A run may have something to decide."""

    run_id: str
    workflow_id: str
    workflow_type: str
    queue: str
    published_at: Micros


@dataclass(frozen=True, kw_only=True, slots=True)
class RunActivity:
    """An attempt of an activity waits to be claimed. Carries no arguments: the claim loads them."""

    run_id: str
    workflow_id: str
    number: int
    attempt: int
    name: str
    queue: str
    nonce: str
    published_at: Micros
    priority: int | None = None
    start_to_close_us: Micros | None = None
    """Lets the worker that runs the attempt stop it in time without asking the database."""
    retries: int = 0
    """How often the body asked Celery to run it again in this attempt: what ``request.retries`` shows."""
    celery_options: Attributes = field(default_factory=dict)


Message = WakeDecision | RunActivity


class Transport(Protocol):
    """Carries messages to workers."""

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        """Sends messages, in order, within ``orchestrator_publish_timeout``.

        Never raises for a broker in trouble: it logs once and returns the messages that were not
        sent, which the sweep sends again.
        """
        ...

    def depth(self, queue: str) -> int | None:
        """Returns how many messages wait in a queue, or None when that can't be told."""
        ...

    def activity_queue(self, name: str, explicit: str | None) -> str:
        """Returns the queue of an activity: the explicit one, else Celery's routes, else its default."""
        ...

    def decision_queue(self, explicit: str | None) -> str:
        """Returns the queue of a workflow's decisions: the explicit one, else Celery's default."""
        ...
