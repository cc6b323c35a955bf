"""What the client answers: frozen values made for reading, times as aware datetimes in UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from orchestrator.model.records import ActivityState, Attention, RunStatus


@dataclass(frozen=True, kw_only=True)
class SignalReceipt:
    """What became of a signal.

    Attributes:
        signal_id: The signal's id: yours, or the one that was made for it.
        stored: True when this call stored it; False when the same signal was there already.
        run_id: The run in which this call stored it; None when it was there already.
    """

    signal_id: str
    stored: bool
    run_id: str | None


@dataclass(frozen=True, kw_only=True)
class WorkflowSummary:
    """One run, as a list shows it.

    Attributes:
        id: Workflow id.
        run_id: The run's own id.
        type: Workflow type.
        namespace: Where the id is unique among open runs.
        status: State of the run.
        attention: What a person may have to look at: ``none``, ``blocked``, ``paused`` or ``no_worker``.
        queue: Celery queue of its decisions.
        created_at: When it was accepted.
        started_at: When its first decision was made; None before.
        closed_at: When it ended; None while it is open.
    """

    id: str
    run_id: str
    type: str
    namespace: str
    status: RunStatus
    attention: Attention
    queue: str
    created_at: datetime
    started_at: datetime | None
    closed_at: datetime | None

    @property
    def is_open(self) -> bool:
        """True while the run can still change."""
        return self.status.is_open


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some runs, newest first.

    Attributes:
        items: The runs.
        next_cursor: Pass it as ``cursor`` for the following page; None at the end.
    """

    items: list[WorkflowSummary]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class ActivityDescription:
    """An open activity of a run.

    Attributes:
        number: Its number in the run.
        name: Activity name, which is its Celery task's name.
        queue: Celery queue.
        state: ``scheduled`` (waits for a worker or for its retry delay) or ``started``.
        attempt: The present attempt, from 1.
        scheduled_at: When its first attempt was scheduled.
        started_at: When the present attempt was claimed; None before.
        next_attempt_at: When the present attempt may start, while it waits for its retry delay.
        worker: Worker process that holds the attempt, None when nobody does.
        last_error: ``Type: message`` of the last failed attempt, None when none failed.
        cancel_requested: True when the workflow cancelled it.
    """

    number: int
    name: str
    queue: str
    state: ActivityState
    attempt: int
    scheduled_at: datetime
    started_at: datetime | None = None
    next_attempt_at: datetime | None = None
    worker: str | None = None
    last_error: str | None = None
    cancel_requested: bool = False


@dataclass(frozen=True, kw_only=True)
class TimerDescription:
    """An open timer of a run: its number and when it is due."""

    number: int
    due_at: datetime


@dataclass(frozen=True, kw_only=True)
class WaitDescription:
    """An open wait for a signal.

    Attributes:
        number: Its number in the run.
        name: Name of the signal.
        timer: Number of the timer of its time-out, None without one.
    """

    number: int
    name: str
    timer: int | None = None


@dataclass(frozen=True, kw_only=True)
class WorkflowDescription(WorkflowSummary):
    """Everything about one run, in one answer.

    Attributes:
        lineage_id: The first run of the lineage this run belongs to.
        history_length: How many events its history has.
        input: Its positional arguments, as plain JSON values.
        memo: What was noted at its start, None when nothing was.
        activities: Its open activities, by number.
        timers: Its open timers, by due time.
        waits: Its open waits for signals, in the order they were opened.
        pending_messages: How many messages wait for its next decision.
        next_wakeup_at: When it goes on by itself at the latest: the earliest timer, retry or deadline. None when
            only a message from outside can wake it, or when it has ended.
        blocked_reason: Why it is blocked, None when it is not.
        failure: ``Type: message`` of what ended it, None when nothing did.
        close_reason: Reason given with its cancellation or termination.
        previous_run_id: The run before it in its lineage.
        successor_run_id: The run after it in its lineage.
        declared_signals: Signals its type declares; None when any name is accepted, or not known yet.
        build_id: Build that made its last decision.
    """

    lineage_id: str
    history_length: int
    input: list[Any]
    memo: Any = None
    activities: list[ActivityDescription] = field(default_factory=list)
    timers: list[TimerDescription] = field(default_factory=list)
    waits: list[WaitDescription] = field(default_factory=list)
    pending_messages: int = 0
    next_wakeup_at: datetime | None = None
    blocked_reason: str | None = None
    failure: str | None = None
    close_reason: str = ""
    previous_run_id: str | None = None
    successor_run_id: str | None = None
    declared_signals: tuple[str, ...] | None = None
    build_id: str = ""


@dataclass(frozen=True, kw_only=True)
class HistoryEvent:
    """One event of a run's history.

    Attributes:
        seq: Its number, gap-free from 1.
        at: The time of the decision that recorded it.
        kind: For example ``ActivityCompleted``.
        attributes: Its plain facts.
        payload: The value it carries (input, result, failure) as plain JSON, None without one.
    """

    seq: int
    at: datetime
    kind: str
    attributes: dict[str, Any]
    payload: Any = None


@dataclass(frozen=True, kw_only=True)
class HistoryPage:
    """Some events of one run.

    Attributes:
        run_id: The run.
        events: The events, in the order asked for.
        next_cursor: Pass it as ``after`` for the following page; None at the end.
    """

    run_id: str
    events: list[HistoryEvent]
    next_cursor: int | None
