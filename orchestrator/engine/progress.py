"""Notes how far each queue was consumed, so that a re-send never amplifies a backlog (P4).

A message may be sent again only when its queue is empty, or when work that was published *later* on
that queue has been claimed. The second is noted here: the newest publish time among claimed messages,
per queue, written at most once a second per process so that it never becomes a hot row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from orchestrator.types import SECOND, Micros


def lane(queue: str, priority: int | None) -> str:
    """Returns under which name the progress of a queue's messages of one priority is noted.

    Urgent messages overtake others, so their arrival says nothing about those that went before.
    """
    return queue if priority is None else f"{queue} (priority {priority})"


class ProgressNotes:
    """Throttles the writes of queue progress in one process. Thread-safe.

    Args:
        interval_us: Shortest time between two writes for one queue, in microseconds.
    """

    def __init__(self, interval_us: Micros = SECOND) -> None:
        self._interval_us = interval_us
        self._written: dict[str, Micros] = {}
        self._lock = threading.Lock()

    def note(self, queue: str, published_at: Micros, write: Callable[[str, Micros], None]) -> None:
        """Calls ``write(queue, published_at)`` unless that queue was noted a moment ago."""
        with self._lock:
            if published_at < self._written.get(queue, 0) + self._interval_us:
                return
            self._written[queue] = published_at
        write(queue, published_at)
