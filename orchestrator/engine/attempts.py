"""One attempt of an activity, from its claim to its outcome (protocol rule P7).

A claim moves the activity from *scheduled* to *started* and hands out a fresh fencing token. Heartbeat and
outcome must show it: whoever lost the attempt meanwhile (time-out, lost worker, take-over) is refused and
told so. The outcome closes the activity and puts one row into the run's inbox, in one transaction.

What a claim answers, by the state it finds::

    no row / closed / another attempt number          refused: nothing to do
    scheduled, this attempt                           claimed
    started, another nonce                            refused: a doubled message
    started, same nonce, more Celery retries          the same attempt goes on with a new token
    started, same nonce, claimant gone                the attempt is lost; the next one is published
    started, same nonce, claimant alive               refused: left to liveness
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.engine.core import Engine
from orchestrator.engine.deadlines import started_deadline
from orchestrator.engine.outcomes import Ended, end_completed, end_failed, end_lost, hand_over, timeout_failure
from orchestrator.engine.outcomes import postpone as postpone_attempt
from orchestrator.engine.wakeups import note_arrival
from orchestrator.errors import Unavailable
from orchestrator.model.failures import Failure
from orchestrator.model.records import ActivityRecord, ActivityState, RunRecord
from orchestrator.store import activities, runs, sweeps, workers
from orchestrator.store.database import Connection
from orchestrator.types import Attributes, Micros


@dataclass(frozen=True, kw_only=True)
class WorkerIdentity:
    """Who claims: a worker process and the process in it that runs the body.

    ``pid_started`` is the process's start time in clock ticks since boot, so that a reused pid is told apart.
    """

    worker_id: str
    pid: int
    pid_started: int


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """What the message of an attempt says about itself."""

    run_id: str
    number: int
    attempt: int
    nonce: str
    published_at: Micros
    redelivered: bool = False
    retries: int = 0


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claimed attempt: everything its body needs. Instants are in microseconds."""

    run_id: str
    workflow_id: str
    workflow_type: str
    namespace: str
    number: int
    attempt: int
    name: str
    queue: str
    token: str
    input: bytes
    options: Attributes
    heartbeat_details: bytes | None
    idempotency_key: str
    scheduled_at: Micros
    started_at: Micros
    deadline_at: Micros | None
    heartbeat_timeout_us: Micros | None


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The message has nothing to run; acknowledge it. ``reason`` is for the log."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class HeartbeatReply:
    """What a heartbeat learns.

    Attributes:
        current: False when the attempt is somebody else's now; stop working.
        cancel_requested: True when the workflow cancelled the activity.
    """

    current: bool
    cancel_requested: bool


class ClaimUnknown(Unavailable):
    """The answer to a claim was lost, so that the attempt may be claimed by a process that will not run it."""

    def __init__(self, message: str, *, ticket: Ticket, token: str) -> None:
        super().__init__(message)
        self.ticket = ticket
        self.token = token


ProcessAlive = Callable[[int, int], bool]
"""Tells whether a process of this machine (pid, start time) is alive."""


def claim(
    engine: Engine, ticket: Ticket, worker: WorkerIdentity, *, process_alive: ProcessAlive | None = None
) -> Claim | Refusal:
    """Claims the attempt that a message offers, or says why there is nothing to run.

    Args:
        engine: The engine.
        ticket: What the message says.
        worker: Who claims.
        process_alive: Looks at this machine's processes; without it only stored liveness counts.

    Raises:
        ClaimUnknown: The database was lost while it was claimed; it may be, and :func:`release` gives it back.
        Unavailable: It was not claimed.
    """
    ended: list[Ended] = []
    token = engine.ids()
    written: list[bool] = []

    def attempt_claim(conn: Connection) -> Claim | Refusal:
        ended.clear()
        row = activities.lock(conn, ticket.run_id, ticket.number)
        if row is None or row.state not in (ActivityState.SCHEDULED, ActivityState.STARTED):
            return Refusal(reason="the activity is closed or unknown")
        if row.attempt != ticket.attempt:
            return Refusal(reason=f"attempt {ticket.attempt} is over; attempt {row.attempt} is the current one")
        if row.state is ActivityState.SCHEDULED:
            return _take(engine, conn, row, ticket, worker, token)
        if row.token == token:
            # Claimed by us a moment ago: the commit's answer was lost and this is its repetition.
            run = runs.get(conn, row.run_id)
            assert run is not None
            return _claim_of(run, row, token, started_at=row.started_at or 0, deadline_at=row.deadline_at)
        if row.nonce != ticket.nonce:
            return Refusal(reason="the attempt is claimed through another message")
        if ticket.retries > row.retries:
            return _take(engine, conn, row, ticket, worker, token)
        if not _claimant_gone(engine, conn, row, worker, process_alive):
            return Refusal(reason="the attempt's claimant is alive; liveness watches over it")
        ended.append(end_lost(engine, conn, row))
        return Refusal(reason="the attempt was lost with its process")

    def noted(conn: Connection) -> Claim | Refusal:
        written.append(isinstance(answer := attempt_claim(conn), Claim))
        return answer

    try:
        answer = engine.db.run(noted, what="claim")
    except Unavailable as error:
        if any(written):
            raise ClaimUnknown(str(error), ticket=ticket, token=token) from error
        raise
    for item in ended:
        item.announce(engine)
    if isinstance(answer, Claim):
        note_arrival(engine, answer.queue, ticket.published_at)
    return answer


def release(engine: Engine, doubt: ClaimUnknown) -> bool:
    """Gives an attempt back whose claim turns out to be committed; False when there is nothing to give back."""

    def settle(conn: Connection) -> Ended | None:
        row = activities.lock(conn, doubt.ticket.run_id, doubt.ticket.number)
        held = row is not None and row.state is ActivityState.STARTED and row.token == doubt.token
        return hand_over(engine, conn, row) if row is not None and held else None

    ended = engine.db.run(settle, what="release a claim")
    if ended is not None:
        ended.announce(engine)
    return ended is not None


def _take(
    engine: Engine, conn: Connection, row: ActivityRecord, ticket: Ticket, worker: WorkerIdentity, token: str
) -> Claim:
    run = runs.get(conn, row.run_id)
    assert run is not None
    now, clock = engine.db.now(conn), sweeps.clock(conn)
    heartbeat_us = row.options["heartbeat_timeout"]
    deadline = started_deadline(row.options, first_scheduled_at=row.scheduled_at, started_at=now)
    values = {
        "state": ActivityState.STARTED,
        "token": token,
        "nonce": ticket.nonce,
        "retries": ticket.retries,
        "worker_id": worker.worker_id,
        "pid": worker.pid,
        "pid_started": worker.pid_started,
        "started_at": now,
        "claim_clock": clock,
        "next_send_at": None,
        "deadline_at": deadline,
        "heartbeat_due_clock": None if heartbeat_us is None else clock + heartbeat_us,
    }
    activities.update(conn, row.run_id, row.number, values)
    return _claim_of(run, row, token, started_at=now, deadline_at=deadline)


def _claim_of(
    run: RunRecord, row: ActivityRecord, token: str, *, started_at: Micros, deadline_at: Micros | None
) -> Claim:
    return Claim(
        run_id=row.run_id,
        workflow_id=row.workflow_id,
        workflow_type=run.workflow_type,
        namespace=run.namespace,
        number=row.number,
        attempt=row.attempt,
        name=row.name,
        queue=row.queue,
        token=token,
        input=row.input,
        options=row.options,
        heartbeat_details=row.heartbeat_details,
        idempotency_key=f"{row.run_id}/{row.number}",
        scheduled_at=row.scheduled_at,
        started_at=started_at,
        deadline_at=deadline_at,
        heartbeat_timeout_us=row.options["heartbeat_timeout"],
    )


def _claimant_gone(
    engine: Engine, conn: Connection, row: ActivityRecord, worker: WorkerIdentity, process_alive: ProcessAlive | None
) -> bool:
    pid, started = row.pid or 0, row.pid_started or 0
    if row.worker_id == worker.worker_id and process_alive is not None:
        return not process_alive(pid, started)
    record = workers.get(conn, row.worker_id or "")
    if record is None:
        return True
    if sweeps.clock(conn) - record.seen_clock > engine.settings.micros("liveness_timeout"):
        return True
    listed = (pid, started) in record.pids
    # A list older than the claim can't know the claimant: its process may be younger than the list.
    return not listed and (row.claim_clock or 0) + 2 * engine.settings.micros("sweep_interval") <= record.seen_clock


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


def postpone(engine: Engine, claim: Claim, delay_us: Micros) -> bool:
    """Records that the same attempt goes on later, by a message that Celery has sent. As :func:`complete`."""
    return _settle(
        engine, claim, lambda conn, row: postpone_attempt(engine, conn, row, engine.db.now(conn) + delay_us), "postpone"
    )


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
