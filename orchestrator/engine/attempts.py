"""One claimed attempt of an activity: heartbeats and its outcome (protocol rule P7).

Heartbeat and outcome must show the claim's fencing token (:mod:`orchestrator.engine.claims`): whoever lost the
attempt meanwhile (time-out, lost worker, take-over) is refused and told so. The outcome closes the activity
and puts one row into the run's inbox, in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.engine.claims import Claim, ClaimUnknown, Refusal, Ticket, WorkerIdentity, claim, release
from orchestrator.engine.core import Engine
from orchestrator.engine.outcomes import Ended, end_completed, end_failed, end_lost, hand_over, timeout_failure
from orchestrator.engine.outcomes import postpone as postpone_attempt
from orchestrator.model.failures import Failure
from orchestrator.model.records import ActivityRecord, ActivityState
from orchestrator.store import activities, sweeps
from orchestrator.store.database import Connection
from orchestrator.types import Micros


@dataclass(frozen=True, kw_only=True)
class HeartbeatReply:
    """What a heartbeat learns.

    Attributes:
        current: False when the attempt is somebody else's now; stop working.
        cancel_requested: True when the workflow cancelled the activity.
    """

    current: bool
    cancel_requested: bool


def _held(conn: Connection, claim: Claim) -> ActivityRecord | None:
    """Returns the activity's row, locked, if the claim still holds the attempt."""
    row = activities.lock(conn, claim.run_id, claim.number)
    if row is None or row.attempt != claim.attempt:
        return None
    if row.state is ActivityState.STARTED and row.token == claim.token:
        return row
    # The claim's own commit was lost (asynchronous commit): the outcome is accepted as if claimed.
    return row if row.state is ActivityState.SCHEDULED and row.token is None else None


def _settle(engine: Engine, claim: Claim, end: Callable[[Connection, ActivityRecord], Ended], what: str) -> bool:
    def settle(conn: Connection) -> Ended | None:
        row = _held(conn, claim)
        return None if row is None else end(conn, row)

    ended = engine.db.run(settle, what=what)
    if ended is None:
        return False
    ended.announce(engine)
    return True


def complete(engine: Engine, claim: Claim, result: bytes) -> bool:
    """Records the attempt's result; False when the attempt is somebody else's now (nothing is recorded)."""
    return _settle(engine, claim, lambda conn, row: end_completed(engine, conn, row, result), "complete")


def fail(engine: Engine, claim: Claim, failure: Failure) -> bool:
    """Records the attempt's failure: another attempt by the policy, else the activity's end. As :func:`complete`."""
    return _settle(engine, claim, lambda conn, row: end_failed(engine, conn, row, failure), "fail")


def lose(engine: Engine, claim: Claim) -> bool:
    """Records that the attempt's process is gone: the next attempt, or WorkerLost. As :func:`complete`."""
    return _settle(engine, claim, lambda conn, row: end_lost(engine, conn, row), "lose")


def hand_back(engine: Engine, claim: Claim) -> bool:
    """Gives the attempt back at shut-down, counted in neither counter. As :func:`complete`."""
    return _settle(engine, claim, lambda conn, row: hand_over(engine, conn, row), "hand back")


def postpone(engine: Engine, claim: Claim, delay_us: Micros, *, retried: bool) -> bool:
    """Records that the same attempt goes on later, by a message of Celery's. As :func:`complete`.

    Args:
        engine: The engine.
        claim: The attempt.
        delay_us: How long that message waits, in microseconds.
        retried: It is a retry, which counts; False: the message itself comes back.
    """

    def end(conn: Connection, row: ActivityRecord) -> Ended:
        return postpone_attempt(engine, conn, row, engine.db.now(conn) + delay_us, row.retries + retried)

    return _settle(engine, claim, end, "postpone")


def report_gone(
    engine: Engine, ticket: Ticket, worker_id: str, *, failure: Failure | None = None, handed_back: bool = False
) -> bool:
    """Records that the process running a message's attempt is gone, as its worker saw it.

    Args:
        engine: The engine.
        ticket: What the message says.
        worker_id: The worker whose process it was.
        failure: Why the worker ended it; None when it died by itself.
        handed_back: The worker ended it at its own shut-down: counted in neither counter.

    Returns:
        False when the attempt was not that worker's any more; nothing is recorded then.
    """

    def settle(conn: Connection) -> Ended | None:
        row = activities.lock(conn, ticket.run_id, ticket.number)
        if row is None or row.state is not ActivityState.STARTED or row.worker_id != worker_id:
            return None
        if (row.attempt, row.nonce) != (ticket.attempt, ticket.nonce):
            return None
        if handed_back:
            return hand_over(engine, conn, row)
        if failure is not None:
            return end_failed(engine, conn, row, failure)
        limit = row.options["start_to_close_timeout"]
        if limit is not None and (row.started_at or 0) + int(limit) <= engine.db.now(conn):
            # Its worker killed it for that.
            return end_failed(engine, conn, row, timeout_failure(row, "start_to_close"))
        return end_lost(engine, conn, row)

    ended = engine.db.run(settle, what="report a lost attempt")
    if ended is None:
        return False
    ended.announce(engine)
    return True


def heartbeat(engine: Engine, claim: Claim, details: bytes | None) -> HeartbeatReply:
    """Renews the attempt's heartbeat and stores its details for the next attempt (None keeps the last ones)."""

    def renew(conn: Connection) -> HeartbeatReply:
        row = activities.lock(conn, claim.run_id, claim.number)
        if row is None or row.state is not ActivityState.STARTED or row.token != claim.token:
            return HeartbeatReply(current=False, cancel_requested=bool(row and row.cancel_requested))
        values: dict[str, object] = {}
        if details is not None:
            values["heartbeat_details"] = details
        if claim.heartbeat_timeout_us is not None:
            values["heartbeat_due_clock"] = sweeps.clock(conn) + claim.heartbeat_timeout_us
        if values:
            activities.update(conn, claim.run_id, claim.number, values)
        return HeartbeatReply(current=True, cancel_requested=row.cancel_requested)

    return engine.db.run(renew, what="heartbeat")


__all__ = [
    "Claim",
    "ClaimUnknown",
    "HeartbeatReply",
    "Refusal",
    "Ticket",
    "WorkerIdentity",
    "claim",
    "complete",
    "fail",
    "hand_back",
    "heartbeat",
    "lose",
    "postpone",
    "release",
    "report_gone",
]
