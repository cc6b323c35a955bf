"""What a test has noted for later instants: replies of a person, the ends of slow activities."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable

from orchestrator.types import Micros

Action = Callable[[], object]
"""What is done when its instant has come; its result is ignored."""


class Agenda:
    """Actions by the instant they are due at, in the order of their entry where that is equal. Thread-safe."""

    def __init__(self) -> None:
        self._entries: list[tuple[Micros, int, Action]] = []
        self._count = itertools.count()
        self._lock = threading.Lock()

    def add(self, due_at: Micros, action: Action) -> None:
        """Notes an action for an instant."""
        with self._lock:
            heapq.heappush(self._entries, (due_at, next(self._count), action))

    def next_due(self) -> Micros | None:
        """Returns when the first action is due, None when there is none."""
        with self._lock:
            return self._entries[0][0] if self._entries else None

    def pop_due(self, now: Micros) -> Action | None:
        """Takes the first action that is due, or returns None."""
        with self._lock:
            if self._entries and self._entries[0][0] <= now:
                return heapq.heappop(self._entries)[2]
            return None
