"""Claiming an attempt: the first half of its life (protocol rule P7); the second is :mod:`orchestrator.engine.attempts`.

A claim moves the activity from *scheduled* to *started* and hands out a fresh fencing token. What it answers,
by the state it finds::

    no row / closed / another attempt number          refused: nothing to do
    scheduled, fewer Celery retries than counted      refused: an older retry
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
from orchestrator.engine.outcomes import Ended, end_lost, hand_over
from orchestrator.engine.progress import lane
from orchestrator.engine.wakeups import note_arrival
from orchestrator.errors import Unavailable
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
    asked = _Asked(ticket=ticket, worker=worker, token=engine.ids(), process_alive=process_alive)
    written: list[bool] = []

    def work(conn: Connection) -> tuple[Claim | Refusal, Ended | None]:
        answer, ended = _answer(engine, conn, asked)
        written.append(isinstance(answer, Claim))
        return answer, ended

    try:
        answer, ended = engine.db.run(work, what="claim")
    except Unavailable as error:
        if any(written):
            raise ClaimUnknown(str(error), ticket=ticket, token=asked.token) from error
        raise
    if ended is not None:
        ended.announce(engine)
    if isinstance(answer, Claim):
        note_arrival(engine, lane(answer.queue, answer.options.get("priority")), ticket.published_at)
    return answer


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One call of :func:`claim`, with the token it would hand out."""

    ticket: Ticket
    worker: WorkerIdentity
    token: str
    process_alive: ProcessAlive | None


def _answer(engine: Engine, conn: Connection, asked: _Asked) -> tuple[Claim | Refusal, Ended | None]:
    """Returns the answer to a claim, and what has become of an attempt that was found lost."""
    ticket = asked.ticket
    row = activities.lock(conn, ticket.run_id, ticket.number)
    if (reason := _outdated(row, ticket)) is not None:
        return Refusal(reason=reason), None
    assert row is not None
    if row.state is ActivityState.SCHEDULED:
        return _take(engine, conn, row, asked), None
    if row.token == asked.token:
        return _repeated(conn, row, asked.token), None
    if row.nonce != ticket.nonce:
        return Refusal(reason="the attempt is claimed through another message"), None
    if ticket.retries > row.retries:
        return _take(engine, conn, row, asked), None
    if not _claimant_gone(engine, conn, row, asked.worker, asked.process_alive):
        return Refusal(reason="the attempt's claimant is alive; liveness watches over it"), None
    return Refusal(reason="the attempt was lost with its process"), end_lost(engine, conn, row)


def _repeated(conn: Connection, row: ActivityRecord, token: str) -> Claim:
    """Returns the claim we made a moment ago: the commit's answer was lost, and this is its repetition."""
    run = runs.get(conn, row.run_id)
    assert run is not None
    return _claim_of(run, row, token, started_at=row.started_at or 0, deadline_at=row.deadline_at)


def _outdated(row: ActivityRecord | None, ticket: Ticket) -> str | None:
    """Returns why a message offers nothing any more, whoever claims; None when it does."""
    if row is None:
        return "the activity is unknown"
    if row.state not in (ActivityState.SCHEDULED, ActivityState.STARTED):
        return "the activity is closed"
    if row.attempt != ticket.attempt:
        return f"attempt {ticket.attempt} is over; attempt {row.attempt} is the current one"
    if row.state is ActivityState.SCHEDULED and ticket.retries < row.retries:
        return "a later retry of the task is under way"
    return None


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


def _take(engine: Engine, conn: Connection, row: ActivityRecord, asked: _Asked) -> Claim:
    ticket, worker, token = asked.ticket, asked.worker, asked.token
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
