"""Doing a transaction again, with growing and scattered pauses, for a bounded time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from orchestrator.errors import Unavailable
from orchestrator.store.failures import CommitUnknown, Interrupted

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Retrying:
    """How long and how fast to try again.

    Args:
        limit: Seconds after which to give up; a try that runs is never cut short.
        first: Seconds of the first pause; each is twice the one before.
        longest: Cap of a pause in seconds.
        sleep: Pauses for that many seconds.
        monotonic: Returns seconds on a clock that only goes forward.
        share: Returns a number from 0 to 1; a pause is cut to between half and all of its length by it.
    """

    limit: float = 5.0
    first: float = 0.01
    longest: float = 0.5
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    share: Callable[[], float] = random.random

    def call(self, work: Callable[[], T], *, what: str, idempotent: bool = True) -> T:
        """Does the work until it succeeds.

        Args:
            work: One whole transaction.
            what: Words for the error message.
            idempotent: False: a commit whose answer was lost is not done again.

        Raises:
            Unavailable: The time is up.
            CommitUnknown: The answer to a commit was lost, and the work is not idempotent or time is up.
        """
        deadline, pause = self.monotonic() + self.limit, self.first
        while True:
            try:
                return work()
            except CommitUnknown:
                if not idempotent or self.monotonic() + pause > deadline:
                    raise
            except Interrupted as error:
                if self.monotonic() + pause > deadline:
                    raise Unavailable(
                        f"{what}: the database did not answer within {self.limit:g} s. {error}. Check that it is up, "
                        "and orchestrator_database_url; the same call may be made again."
                    ) from error
            self.sleep(pause * (0.5 + 0.5 * self.share()))
            pause = min(2 * pause, self.longest)
