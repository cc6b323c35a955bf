"""Rows as the engine sees them: frozen values that cross the store's boundary."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.types import Attributes, Micros


class RunStatus(StrEnum):
    """States of a run. PENDING means exactly: no decision was made yet."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    TERMINATED = "TERMINATED"
    TIMED_OUT = "TIMED_OUT"
    CONTINUED_AS_NEW = "CONTINUED_AS_NEW"

    @property
    def is_open(self) -> bool:
        """True while the run can still change."""
        return self in OPEN_STATUSES


OPEN_STATUSES = frozenset({RunStatus.PENDING, RunStatus.RUNNING})


class Attention(StrEnum):
    """What a person may have to look at, beside the status."""

    NONE = "none"
    BLOCKED = "blocked"
    PAUSED = "paused"
    NO_WORKER = "no_worker"


class ActivityState(StrEnum):
    """States of an activity; an attempt lives in SCHEDULED and STARTED."""

    SCHEDULED = "scheduled"
    """An attempt waits for its message to be claimed, or for its retry delay to pass."""
    STARTED = "started"
    """An attempt is claimed: somebody holds the fencing token."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


class InboxKind(StrEnum):
    """Kinds of inbox rows: what others tell a run."""

    SIGNAL = "signal"
    CANCEL = "cancel"
    TERMINATE = "terminate"
    TIMER = "timer"
    ACTIVITY_COMPLETED = "activity_completed"
    ACTIVITY_FAILED = "activity_failed"
    DEADLINE = "deadline"

    @property
    def is_message(self) -> bool:
        """True for what a caller was told is accepted (P6): it must be seen before the run closes."""
        return self in (InboxKind.SIGNAL, InboxKind.CANCEL, InboxKind.TERMINATE)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """One row of ``orchestrator_runs``. Payload fields are encoded bytes."""

    run_id: str
    namespace: str
    workflow_id: str
    workflow_type: str
    queue: str
    lineage_id: str
    status: RunStatus
    attention: Attention
    input: bytes
    input_digest: str
    last_seq: int
    decision_token: str
    created_at: Micros
    previous_run_id: str | None = None
    successor_run_id: str | None = None
    request_id: str | None = None
    memo: bytes | None = None
    declared_signals: tuple[str, ...] | None = None
    """Names the type declares; None: not known yet, or any name is accepted."""
    started_at: Micros | None = None
    closed_at: Micros | None = None
    last_event_at: Micros = 0
    result: bytes | None = None
    failure: bytes | None = None
    """Closing failure, or why the run is blocked while it is open."""
    blocked_by: str | None = None
    """Fingerprint of the code that blocked; other code tries again at once."""
    blocked_count: int = 0
    next_try_at: Micros | None = None
    """A blocked run ignores wake-ups before this instant, unless the code changed."""
    next_send_at: Micros | None = None
    """When the sweep wakes this run again: set while PENDING or blocked, cleared by a decision."""
    send_count: int = 0
    published_at: Micros | None = None
    deadline_at: Micros | None = None
    build_id: str = ""
    python_version: str = ""
    engine_version: str = ""
    close_reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class InboxRow:
    """One undelivered message of a run, in the order of ``id``."""

    id: int
    run_id: str
    kind: InboxKind
    created_at: Micros
    number: int | None = None
    attrs: Attributes = field(default_factory=dict)
    payload: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ActivityRecord:
    """One row of ``orchestrator_activities``. Deadlines are database-clock instants."""

    run_id: str
    number: int
    workflow_id: str
    name: str
    queue: str
    state: ActivityState
    attempt: int
    """Attempts begun or waiting to begin, from 1."""
    input: bytes
    options: Attributes
    """``retry`` (RetryPolicy.to_json), the time-outs in µs, ``priority``, ``legacy``, ``celery``."""
    scheduled_at: Micros
    """When the first attempt was scheduled."""
    token: str | None = None
    nonce: str | None = None
    retries: int = 0
    worker_id: str | None = None
    pid: int | None = None
    pid_started: int | None = None
    failures: int = 0
    """Attempts that failed or timed out: what maximum_attempts bounds."""
    losses: int = 0
    """Attempts in a row lost with their process: bounded on its own."""
    attempt_scheduled_at: Micros = 0
    started_at: Micros | None = None
    closed_at: Micros | None = None
    published_at: Micros | None = None
    next_send_at: Micros | None = None
    send_count: int = 0
    deadline_at: Micros | None = None
    """The earliest of the deadlines that apply in this state; what the sweep's index holds."""
    claim_clock: Micros | None = None
    """Sweep-clock reading at the claim."""
    heartbeat_due_clock: Micros | None = None
    """Sweep-clock reading at which the next heartbeat is overdue; None without a heartbeat time-out."""
    heartbeat_details: bytes | None = None
    cancel_requested: bool = False
    last_failure: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerRecord:
    """One row of ``orchestrator_workers``: a worker process's own sign of life."""

    worker_id: str
    hostname: str
    namespace: str
    queues: tuple[str, ...]
    pids: tuple[tuple[int, int], ...]
    """Live processes as (pid, start time in clock ticks since boot)."""
    tasks: tuple[str, ...]
    workflows: tuple[str, ...]
    build_id: str
    seen_clock: Micros
    """Sweep-clock reading when it was written."""
    seen_at: Micros
    started_at: Micros
    stopping: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalKey:
    """What is remembered of an accepted signal for as long as its lineage."""

    lineage_id: str
    signal_id: str
    name: str
    digest: str
    run_id: str
    at: Micros
