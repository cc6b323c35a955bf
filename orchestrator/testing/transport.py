"""The transport of a test: messages wait in memory, and whoever published is followed by the environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.transport.memory import MemoryTransport
from orchestrator.transport.messages import Message


class FollowedTransport(MemoryTransport):
    """Calls ``follow`` after each publication, which is always after the commit behind it.

    So a start or a signal takes effect before the call that made it returns, as if a worker had been waiting.
    """

    def __init__(self) -> None:
        super().__init__()
        self.follow: Callable[[], object] = lambda: None

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        left = super().publish(messages)
        if messages:
            self.follow()
        return left
