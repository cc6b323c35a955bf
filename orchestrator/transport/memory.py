"""An in-process transport: plain deques, drained by whoever owns it.

The test kit and the simulation drive it by hand; nothing runs by itself, so order is theirs to choose.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from orchestrator.transport.messages import Message, RunActivity


class MemoryTransport:
    """Holds published messages until :meth:`pop` takes them. Thread-safe.

    Args:
        default_queue: Queue of what names none.
    """

    def __init__(self, default_queue: str = "celery") -> None:
        self._default_queue = default_queue
        self._messages: deque[Message] = deque()
        self._lock = threading.Lock()

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        """Keeps the messages; always succeeds."""
        with self._lock:
            self._messages.extend(messages)
        return []

    def depth(self, queue: str) -> int | None:
        """Returns how many messages wait in a queue."""
        with self._lock:
            return sum(message.queue == queue for message in self._messages)

    def waiting(self) -> bool:
        """Tells whether any message waits."""
        with self._lock:
            return bool(self._messages)

    def activity_queue(self, name: str, explicit: str | None) -> str:  # noqa: ARG002 - the protocol's signature
        """Returns the explicit queue, else the default one."""
        return explicit or self._default_queue

    def decision_queue(self, explicit: str | None) -> str:
        """Returns the explicit queue, else the default one."""
        return explicit or self._default_queue

    def pop(self, *, decisions_only: bool = False) -> Message | None:
        """Takes the oldest message (the oldest wake-up if ``decisions_only``), or None."""
        with self._lock:
            for index, message in enumerate(self._messages):
                if not (decisions_only and isinstance(message, RunActivity)):
                    del self._messages[index]
                    return message
        return None
