"""Writing a decision: all of it or nothing (protocol rule P4).

The lock order is fixed (P9): gate and run row are held already; then the run is updated, history appended,
activity and timer rows written by number, and last the drained inbox rows deleted: exactly the ids that
were read. Another row count means that somebody drained them, and the decision is thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.engine.advance import START, Advance
from orchestrator.engine.core import Engine
from orchestrator.engine.deadlines import scheduled_deadline, stored_options
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from orchestrator.model.records import ActivityRecord, ActivityState, Attention, RunRecord
from orchestrator.store import activities, history, inbox, runs, timers
from orchestrator.store.database import Connection, RunLock
from orchestrator.store.failures import DecisionOutdated
from orchestrator.transport.messages import Message, RunActivity
from orchestrator.types import Micros


@dataclass(frozen=True, kw_only=True)
class Committed:
    """What is published once the decision is committed."""

    messages: Sequence[Message]


def commit(engine: Engine, lock: RunLock, run: RunRecord, step: Advance, token: str) -> Committed:
    """Writes a decision through the lock's transaction; the caller commits it.

    Raises:
        DecisionOutdated: Somebody else decided or drained meanwhile.
    """
    conn = lock.connection()
    events = [
        ev.Event(seq=run.last_seq + index, at=step.now, body=body) for index, body in enumerate(step.bodies, start=1)
    ]
    runs.update(conn, run.run_id, _run_values(run, step, token))
    history.append(conn, run.run_id, events)
    scheduled = _scheduled(engine, run, step)
    activities.insert(conn, scheduled)
    _cancel_activities(conn, run.run_id, step)
    _write_timers(conn, run.run_id, step)
    if step.closed:
        activities.close_all(conn, run.run_id, step.now)
        timers.delete_all(conn, run.run_id)
    drained = [row.id for row in step.rows if row is not START]
    if drained and inbox.delete(conn, drained) != len(drained):
        raise DecisionOutdated("Inbox rows of this decision were drained by somebody else.")
    # A run that closes in the decision that scheduled an activity has no use for it any more.
    messages = [] if step.closed else [first_message(engine, record) for record in scheduled]
    return Committed(messages=messages)


def _run_values(run: RunRecord, step: Advance, token: str) -> dict[str, Any]:
    values: dict[str, Any] = {
        "last_seq": run.last_seq + len(step.bodies),
        "decision_token": token,
        "last_event_at": step.now,
    }
    if run.status is not step.status:
        values["status"] = step.status
    if run.started_at is None:
        values["started_at"] = step.now
    if run.next_send_at is not None:
        values |= {"next_send_at": None, "send_count": 0}
    if run.attention is Attention.BLOCKED:
        values |= {
            "attention": Attention.NONE,
            "failure": None,
            "blocked_by": None,
            "blocked_count": 0,
            "next_try_at": None,
        }
    if step.declared_signals != run.declared_signals:
        values["declared_signals"] = step.declared_signals
    return values | _closing_values(step)


def _closing_values(step: Advance) -> dict[str, Any]:
    if not step.closed:
        return {}
    last = step.bodies[-1]
    return {
        "closed_at": step.now,
        "close_reason": step.close_reason,
        "result": last.result if isinstance(last, ev.RunCompleted) else None,
        "failure": last.failure if isinstance(last, ev.RunFailed) else None,
    }


def _scheduled(engine: Engine, run: RunRecord, step: Advance) -> list[ActivityRecord]:
    return [
        _activity_record(engine, run, command, step.now)
        for command in step.commands
        if isinstance(command, cmd.ScheduleActivity)
    ]


def _activity_record(engine: Engine, run: RunRecord, command: cmd.ScheduleActivity, now: Micros) -> ActivityRecord:
    options = stored_options(command.options)
    return ActivityRecord(
        run_id=run.run_id,
        number=command.number,
        workflow_id=run.workflow_id,
        name=command.name,
        queue=engine.transport.activity_queue(command.name, command.options.queue),
        state=ActivityState.SCHEDULED,
        attempt=1,
        input=command.input,
        options=options,
        scheduled_at=now,
        attempt_scheduled_at=now,
        published_at=now,
        next_send_at=now + engine.settings.micros("resend_after"),
        send_count=1,
        deadline_at=scheduled_deadline(options, first_scheduled_at=now, due_at=now),
    )


def first_message(engine: Engine, record: ActivityRecord) -> RunActivity:
    """Returns the message that offers a scheduled attempt to workers, with a fresh nonce."""
    return RunActivity(
        run_id=record.run_id,
        workflow_id=record.workflow_id,
        number=record.number,
        attempt=record.attempt,
        name=record.name,
        queue=record.queue,
        nonce=engine.ids(),
        published_at=record.published_at or 0,
        priority=record.options.get("priority"),
        start_to_close_us=record.options.get("start_to_close_timeout"),
        retries=record.retries,
        celery_options=record.options.get("celery") or {},
    )


def _cancel_activities(conn: Connection, run_id: str, step: Advance) -> None:
    targets = sorted(command.target for command in step.commands if isinstance(command, cmd.CancelActivity))
    for number in targets:
        closed = {"state": ActivityState.CANCELED, "closed_at": step.now, "next_send_at": None, "deadline_at": None}
        waiting = {"state": ActivityState.SCHEDULED}
        if not activities.update(conn, run_id, number, {**closed, "cancel_requested": True}, expect=waiting):
            running = {"state": ActivityState.STARTED}
            activities.update(conn, run_id, number, {"cancel_requested": True}, expect=running)


def _write_timers(conn: Connection, run_id: str, step: Advance) -> None:
    started = {c.number: c for c in step.commands if isinstance(c, cmd.StartTimer)}
    cancelled = {c.target for c in step.commands if isinstance(c, cmd.CancelTimer)}
    # Started and cancelled in one decision (by two of its activations): no row is needed at all.
    fresh = [(run_id, number, command.due_at) for number, command in started.items() if number not in cancelled]
    if fresh and not step.closed:
        timers.insert(conn, fresh)
    old = sorted(cancelled - started.keys())
    if old:
        timers.delete(conn, run_id, old)
