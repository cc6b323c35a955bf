"""How an attempt ends, and whether another follows (protocol rule P7).

Every function here runs in a transaction that holds the activity's row and leaves it in a consistent state;
what it returns is announced after the commit. Two counters bound the attempts: ``failures`` counts attempts
that failed or timed out against the policy's ``maximum_attempts``; ``losses`` counts attempts lost in a row
with their process against ``orchestrator_lost_limit``. What a worker hands back counts in neither.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.engine.changes import first_message
from orchestrator.engine.core import Engine
from orchestrator.engine.deadlines import final_deadline, scheduled_deadline
from orchestrator.engine.observers import ActivityNotice, notify
from orchestrator.engine.retries import next_delay
from orchestrator.engine.wakeups import wake_for_row
from orchestrator.model.failures import Failure, FailureKind, encode_failure, failure_matches
from orchestrator.model.records import ActivityRecord, ActivityState, InboxKind
from orchestrator.store import activities, inbox
from orchestrator.store.database import Connection
from orchestrator.types import Micros

_UNCLAIMED = {
    "token": None,
    "nonce": None,
    "retries": 0,
    "worker_id": None,
    "pid": None,
    "pid_started": None,
    "claim_clock": None,
    "heartbeat_due_clock": None,
}


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What became of an attempt; ``announce`` it after the commit."""

    row: ActivityRecord
    inbox_id: int | None = None
    publish: ActivityRecord | None = None
    failure: Failure | None = None

    def announce(self, engine: Engine) -> None:
        """Wakes the run, publishes the next attempt, tells the observers."""
        if self.publish is not None:
            engine.transport.publish([first_message(engine, self.publish)])
        if self.inbox_id is not None:
            wake_for_row(engine, self.row.run_id, self.inbox_id)
        if self.failure is not None:
            notify(engine.observers, "activity_failed", self._notice(self.failure))

    def _notice(self, failure: Failure) -> ActivityNotice:
        return ActivityNotice(
            workflow_id=self.row.workflow_id,
            run_id=self.row.run_id,
            activity=self.row.name,
            number=self.row.number,
            attempt=self.row.attempt,
            error_type=failure.type,
            message=failure.message,
            final=self.inbox_id is not None,
        )


def end_completed(engine: Engine, conn: Connection, row: ActivityRecord, result: bytes) -> Ended:
    """The attempt returned: the activity is over."""
    inbox_id = _close(engine, conn, row, ActivityState.COMPLETED, InboxKind.ACTIVITY_COMPLETED, result)
    return Ended(row=row, inbox_id=inbox_id)


def end_failed(engine: Engine, conn: Connection, row: ActivityRecord, failure: Failure) -> Ended:
    """The attempt failed or timed out: another attempt by the policy, else the activity is over."""
    if row.cancel_requested:
        return end_cancelled(engine, conn, row)
    due = _next_due(engine, conn, row, failure)
    if due is None:
        return _end_for_good(engine, conn, row, failure)
    changes = {"failures": row.failures + 1, "losses": 0, "last_failure": encode_failure(engine.converter, failure)}
    _reschedule(engine, conn, row, due, changes, publish_now=False)
    return Ended(row=row, failure=failure)


def end_lost(engine: Engine, conn: Connection, row: ActivityRecord) -> Ended:
    """The attempt's process is gone: the next attempt at once, until too many were lost in a row."""
    if row.cancel_requested:
        return end_cancelled(engine, conn, row)
    losses = row.losses + 1
    attempts: int | None = row.options["retry"]["attempts"]
    if row.options["celery"].get("reruns_when_lost"):
        # A plain task whose own settings have Celery run it again: as often as any other lost attempt.
        attempts = None
    limit = min(engine.settings.lost_limit, attempts or engine.settings.lost_limit)
    failure = Failure(
        kind=FailureKind.WORKER_LOST,
        type="WorkerLost",
        types=(),
        message=f"The worker process of attempt {row.attempt} is gone ({losses} lost in a row).",
    )
    if losses >= limit:
        return _end_for_good(engine, conn, row, failure)
    now = engine.db.now(conn)
    changes = {"losses": losses, "last_failure": encode_failure(engine.converter, failure)}
    fresh = _reschedule(engine, conn, row, now, changes, publish_now=True)
    return Ended(row=row, publish=fresh, failure=failure)


def end_cancelled(engine: Engine, conn: Connection, row: ActivityRecord) -> Ended:
    """The activity was cancelled and its attempt is over; the workflow went on long ago."""
    now = engine.db.now(conn)
    values = {
        **_UNCLAIMED,
        "state": ActivityState.CANCELED,
        "closed_at": now,
        "next_send_at": None,
        "deadline_at": None,
    }
    activities.update(conn, row.run_id, row.number, values)
    return Ended(row=row)


def end_unstarted(engine: Engine, conn: Connection, row: ActivityRecord, failure: Failure) -> Ended:
    """A deadline that ends the whole activity passed."""
    return end_cancelled(engine, conn, row) if row.cancel_requested else _end_for_good(engine, conn, row, failure)


def hand_over(engine: Engine, conn: Connection, row: ActivityRecord) -> Ended:
    """The worker shuts down and gives the attempt back: the next one at once, counted nowhere."""
    if row.cancel_requested:
        return end_cancelled(engine, conn, row)
    fresh = _reschedule(engine, conn, row, engine.db.now(conn), {}, publish_now=True)
    return Ended(row=row, publish=fresh)


def postpone(engine: Engine, conn: Connection, row: ActivityRecord, due: Micros, retries: int) -> Ended:
    """The body asked Celery to run it again (``self.retry()``): the same attempt waits for that message.

    It is nobody's meanwhile, so that the death of the process that asked loses nothing. Should the message
    get lost, the sweep sends the attempt again.
    """
    if row.cancel_requested:
        return end_cancelled(engine, conn, row)
    values = {
        **_UNCLAIMED,
        "state": ActivityState.SCHEDULED,
        "retries": retries,
        "published_at": due,
        "send_count": 1,
        "next_send_at": due + engine.settings.micros("resend_after"),
        "deadline_at": final_deadline(row.options, row.scheduled_at),
    }
    activities.update(conn, row.run_id, row.number, values)
    return Ended(row=row)


def timeout_failure(row: ActivityRecord, timeout_type: str) -> Failure:
    """Returns the failure of a passed deadline."""
    limit = row.options[f"{timeout_type}_timeout"]
    return Failure(
        kind=FailureKind.TIMEOUT,
        type="ActivityTimeout",
        types=(),
        message=f"{timeout_type} time-out of {limit / 1_000_000:g} s passed in attempt {row.attempt} of {row.name!r}.",
        details=[timeout_type],
    )


def _next_due(engine: Engine, conn: Connection, row: ActivityRecord, failure: Failure) -> Micros | None:
    """Returns when the next attempt is due, or None when there is none."""
    retry = row.options["retry"]
    if failure.non_retryable or failure.kind is FailureKind.CANCELLED:
        return None
    if failure_matches(failure, retry["non_retryable"]):
        return None
    if retry["attempts"] is not None and row.failures + 1 >= retry["attempts"]:
        return None
    delay = failure.next_retry_delay_us
    if delay is None:
        delay = next_delay(retry, row.failures + 1, f"{row.run_id}/{row.number}")
    due = engine.db.now(conn) + delay
    last = final_deadline(row.options, row.scheduled_at)
    return None if last is not None and due >= last else due


def _reschedule(
    engine: Engine,
    conn: Connection,
    row: ActivityRecord,
    due: Micros,
    changes: dict[str, object],
    *,
    publish_now: bool,
) -> ActivityRecord:
    """Opens the next attempt. The sweep publishes it when it is due, unless it is published now."""
    now = engine.db.now(conn)
    next_send = now + engine.settings.micros("resend_after") if publish_now else due
    values = {
        **_UNCLAIMED,
        **changes,
        "state": ActivityState.SCHEDULED,
        "attempt": row.attempt + 1,
        "attempt_scheduled_at": due,
        "published_at": now if publish_now else None,
        "send_count": 1 if publish_now else 0,
        "next_send_at": next_send,
        "deadline_at": scheduled_deadline(row.options, first_scheduled_at=row.scheduled_at, due_at=due),
    }
    activities.update(conn, row.run_id, row.number, values)
    return replace(row, attempt=row.attempt + 1, retries=0, published_at=now, state=ActivityState.SCHEDULED)


def _end_for_good(engine: Engine, conn: Connection, row: ActivityRecord, failure: Failure) -> Ended:
    encoded = encode_failure(engine.converter, failure)
    activities.update(conn, row.run_id, row.number, {"last_failure": encoded})
    inbox_id = _close(engine, conn, row, ActivityState.FAILED, InboxKind.ACTIVITY_FAILED, encoded)
    return Ended(row=row, inbox_id=inbox_id, failure=failure)


def _close(
    engine: Engine, conn: Connection, row: ActivityRecord, state: ActivityState, kind: InboxKind, payload: bytes
) -> int:
    now = engine.db.now(conn)
    values = {**_UNCLAIMED, "state": state, "closed_at": now, "next_send_at": None, "deadline_at": None}
    activities.update(conn, row.run_id, row.number, values)
    return inbox.insert(
        conn,
        row.run_id,
        kind,
        number=row.number,
        attrs={"attempt": row.attempt},
        payload=payload,
        now=now,
        next_send_at=now + engine.settings.micros("resend_after"),
    )
