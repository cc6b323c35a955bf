"""The lock of one run, as a decision sees it (protocol rule P1)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from sqlalchemy import Connection

from orchestrator.model.events import Event
from orchestrator.model.records import InboxKind, InboxRow, RunRecord
from orchestrator.types import Micros

Now = Callable[[Connection], Micros]
"""Reads the database's clock."""


class RunLock(Protocol):
    """The right to append to one run's history, for one commit.

    Every read is a statement of its own, made after the lock was taken, so it sees what everybody
    committed before. Leaving the lock without :meth:`commit` rolls back. Reads raise
    :class:`~orchestrator.store.failures.Interrupted` when the database broke the transaction off.
    """

    run_id: str

    def now(self) -> Micros:
        """Returns the database's clock, read now."""
        ...

    def run(self) -> RunRecord:
        """Reads the run."""
        ...

    def events(self, after: int = 0) -> list[Event]:
        """Reads the history after event ``after``, in order."""
        ...

    def inbox(self, limit: int, exclude: Collection[int] = ()) -> list[InboxRow]:
        """Reads the oldest inbox rows, at most ``limit``, without the ids in ``exclude``."""
        ...

    def first_of(self, kinds: Collection[InboxKind]) -> InboxRow | None:
        """Reads the oldest inbox row of these kinds."""
        ...

    def enter_gate(self, lineage_id: str) -> None:
        """Shuts senders of the lineage out until this decision ends (P6).

        Raises:
            GateBusy: The gate was not free in time; leave the lock and decide again.
            DecisionOutdated: Somebody else committed to the run; leave the lock and decide again.
        """
        ...

    def connection(self) -> Connection:
        """Returns the connection to write through; what it writes is committed by :meth:`commit`.

        Raises:
            DecisionOutdated: Somebody else committed to the run; leave the lock and decide again.
        """
        ...

    def commit(self) -> None:
        """Commits and gives the lock back.

        Raises:
            CommitUnknown: The answer was lost; look the decision token up.
            Interrupted: The database rolled back.
        """
        ...
