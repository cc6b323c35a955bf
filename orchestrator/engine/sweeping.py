"""The steps of a sweep's tick, one function a question; each acts on at most one batch.

Every step moves the rows it acts on out of its own question in the same transaction (deleted, rescheduled,
or their next check set ahead with back-off), so rows that can't make progress never fill a tick.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Protocol

from orchestrator.engine import outcomes
from orchestrator.engine.changes import first_message
from orchestrator.engine.core import Engine
from orchestrator.engine.deadlines import final_deadline
from orchestrator.engine.outcomes import Ended
from orchestrator.engine.progress import lane
from orchestrator.engine.retries import resend_delay
from orchestrator.engine.wakeups import wake, wake_message
from orchestrator.errors import Unavailable
from orchestrator.model.records import ActivityRecord, ActivityState, Attention, InboxKind, RunRecord
from orchestrator.store import activities, inbox, queues, runs, timers, workers
from orchestrator.store.database import Connection
from orchestrator.store.sweeps import Tick
from orchestrator.transport.messages import Message
from orchestrator.types import Micros

FORGOTTEN_AFTER = 10
"""A worker that was silent for so many times ``orchestrator_liveness_timeout`` is forgotten: killed workers never sign
off, and each would cost every tick a question for ever. One that comes back signs life again."""

logger = logging.getLogger(__name__)


def fire_timers(engine: Engine, _tick: Tick, limit: int) -> int:
    """Turns due timers into inbox rows."""

    def fire(conn: Connection) -> list[str]:
        now = engine.db.now(conn)
        fired = timers.pop_due(conn, now, limit)
        resend_at = now + engine.settings.micros("resend_after")
        for run_id, number, _due in fired:
            inbox.insert(conn, run_id, InboxKind.TIMER, number=number, now=now, next_send_at=resend_at)
        return [run_id for run_id, _number, _due in fired]

    run_ids = engine.db.run(fire, what="fire timers")
    wake(engine, run_ids)
    return len(run_ids)


def send_activities(engine: Engine, _tick: Tick, limit: int) -> int:
    """Publishes attempts that are due: retries for the first time, unclaimed ones again."""
    asked = _ask_broker(engine, activities.queues_due, limit)

    def take(conn: Connection) -> tuple[int, list[ActivityRecord]]:
        now = engine.db.now(conn)
        due = activities.due_to_send(conn, asked.at, limit)
        may_send = _may_resend(conn, asked, {row.options.get("priority") for row in due})
        sent = []
        for row in due:
            again = row.send_count == 0 or may_send(row.queue, row.published_at, row.options.get("priority"))
            values: dict[str, object] = {"next_send_at": _next_send(engine, now, row.send_count)}
            if again:
                values |= {"published_at": now, "send_count": row.send_count + 1}
                sent.append(row)
            activities.update(conn, row.run_id, row.number, values)
        return len(due), [_published(row, now) for row in sent]

    count, rows = engine.db.run(take, what="send activities")
    engine.transport.publish([first_message(engine, row) for row in rows])
    return count


def _published(row: ActivityRecord, now: Micros) -> ActivityRecord:
    return replace(row, published_at=now)


def _next_send(engine: Engine, now: Micros, count: int) -> Micros:
    settings = engine.settings
    return now + resend_delay(count, settings.micros("resend_after"), settings.micros("resend_cap"))


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What the broker said about the queues of what was due at an instant."""

    at: Micros
    queues: Collection[str]
    empty: Collection[str]


def _ask_broker(engine: Engine, queues_due: Callable[[Connection, Micros, int], set[str]], limit: int) -> _Asked:
    # Before the transaction: a broker may take seconds to answer, and nobody may wait for that in the database.
    with engine.db.read() as conn:
        now = engine.db.now(conn)
        names = sorted(queues_due(conn, now, limit))
    return _Asked(at=now, queues=names, empty={name for name in names if engine.transport.depth(name) in (0, None)})


class _MaySend(Protocol):
    def __call__(self, queue: str, published_at: Micros | None, priority: int | None = None) -> bool: ...


def _may_resend(conn: Connection, asked: _Asked, priorities: Collection[int | None] = (None,)) -> _MaySend:
    """Returns a test whether a message may be sent again without amplifying a backlog (P4)."""
    reached = queues.progress(conn, [lane(queue, priority) for queue in asked.queues for priority in priorities])

    def may_send(queue: str, published_at: Micros | None, priority: int | None = None) -> bool:
        return queue in asked.empty or reached.get(lane(queue, priority), 0) > (published_at or 0)

    return may_send


Settle = Callable[[Connection, ActivityRecord], Ended]


def _settle_rows(engine: Engine, rows: list[ActivityRecord], settle: Settle) -> None:
    """Ends attempts one transaction each; one that can't be ended keeps no other from its turn."""
    for row in rows:
        try:
            _settle_row(engine, row, settle)
        except Unavailable:
            raise
        except Exception:
            logger.exception(
                "Activity %s of run %s could not be ended; the next tick tries again.", row.number, row.run_id
            )


def _settle_row(engine: Engine, seen: ActivityRecord, settle: Settle) -> None:
    """Ends an attempt if it is still as the sweep saw it, and announces that."""

    def settle_one(conn: Connection) -> Ended | None:
        row = activities.lock(conn, seen.run_id, seen.number)
        same = row is not None and (row.state, row.attempt, row.token) == (seen.state, seen.attempt, seen.token)
        return settle(conn, row) if row is not None and same else None

    ended = engine.db.run(settle_one, what="sweep attempt")
    if ended is not None:
        ended.announce(engine)


def pass_deadlines(engine: Engine, _tick: Tick, limit: int) -> int:
    """Ends attempts and activities whose deadline passed."""
    with engine.db.read() as conn:
        now = engine.db.now(conn)
        rows = activities.past_deadline(conn, now, limit)

    def settle(conn: Connection, row: ActivityRecord) -> Ended:
        last = final_deadline(row.options, row.scheduled_at)
        if last is not None and last <= now:
            return outcomes.end_unstarted(engine, conn, row, outcomes.timeout_failure(row, "schedule_to_close"))
        if row.state is ActivityState.SCHEDULED:
            return outcomes.end_unstarted(engine, conn, row, outcomes.timeout_failure(row, "schedule_to_start"))
        return outcomes.end_failed(engine, conn, row, outcomes.timeout_failure(row, "start_to_close"))

    _settle_rows(engine, rows, settle)
    return len(rows)


def pass_heartbeats(engine: Engine, tick: Tick, limit: int) -> int:
    """Ends attempts whose heartbeat is overdue on the sweep's clock."""
    with engine.db.read() as conn:
        rows = activities.heartbeat_overdue(conn, tick.clock, limit)
    _settle_rows(
        engine,
        rows,
        lambda conn, row: outcomes.end_failed(engine, conn, row, outcomes.timeout_failure(row, "heartbeat")),
    )
    return len(rows)


def find_lost(engine: Engine, tick: Tick, limit: int) -> int:
    """Ends attempts whose worker fell silent or whose process is not listed by its worker."""
    silence = engine.settings.micros("liveness_timeout")
    margin = 2 * engine.settings.micros("sweep_interval")
    gone: list[str] = []
    with engine.db.read() as conn:
        known = workers.all(conn)
        rows = activities.started_by_unknown(conn, [worker.worker_id for worker in known], limit)
        for worker in known:
            if tick.clock - worker.seen_clock > silence:
                held = activities.started_by(conn, worker.worker_id, limit=limit)
                rows += held
                if not held and tick.clock - worker.seen_clock > FORGOTTEN_AFTER * silence:
                    gone.append(worker.worker_id)
            else:
                # A process younger than the list isn't on it: only claims well before it are judged.
                rows += activities.started_by(
                    conn,
                    worker.worker_id,
                    not_pids=worker.pids,
                    claimed_before_clock=worker.seen_clock - margin,
                    limit=limit,
                )
    _settle_rows(engine, rows[:limit], lambda conn, row: outcomes.end_lost(engine, conn, row))
    if gone:
        engine.db.run(lambda conn: [workers.delete(conn, worker_id) for worker_id in gone], what="forget workers")
    return min(len(rows), limit)


def wake_inboxes(engine: Engine, _tick: Tick, limit: int) -> int:
    """Wakes runs whose inbox rows were not drained in time: their wake-up was lost, or waits in a backlog."""
    asked = _ask_broker(engine, inbox.queues_due, limit)

    def take(conn: Connection) -> tuple[int, list[Message]]:
        now = engine.db.now(conn)
        due = inbox.due(conn, asked.at, limit)
        may_send = _may_resend(conn, asked)
        messages: list[Message] = []
        for item in due:
            again = may_send(item.run.queue, item.published_at)
            inbox.postpone(conn, item.run.run_id, now, _next_send(engine, now, item.send_count), sent=again)
            if again:
                messages.append(wake_message(item.run, now))
        return len(due), messages

    return _take_and_publish(engine, take, "wake inboxes")


def wake_runs(engine: Engine, _tick: Tick, limit: int) -> int:
    """Wakes runs that were not begun in time, and blocked runs whose next try is due."""
    passed: list[str] = []
    asked = _ask_broker(engine, runs.queues_due, limit)

    def take(conn: Connection) -> tuple[int, list[Message]]:
        passed.clear()
        now = engine.db.now(conn)
        due = runs.due(conn, asked.at, limit)
        may_send = _may_resend(conn, asked)
        messages: list[Message] = []
        for run in due:
            unsent = run.send_count == 0 or run.attention is Attention.BLOCKED
            again = unsent or may_send(run.queue, run.published_at)
            runs.update(conn, run.run_id, _next_check(engine, run, now, again=again))
            if again:
                messages.append(wake_message(run, now))
            else:
                passed.append(run.run_id)
        return len(due), messages

    count = _take_and_publish(engine, take, "wake runs")
    # Whoever held a run's row owes its inbox a look afterwards: a decider may have found it taken (P2).
    with engine.db.read() as conn:
        owed = [run_id for run_id in passed if inbox.exists(conn, run_id)]
    wake(engine, owed)
    return count


def _next_check(engine: Engine, run: RunRecord, now: Micros, *, again: bool) -> dict[str, object]:
    values: dict[str, object] = {"next_send_at": _next_send(engine, now, run.send_count)}
    return values | ({"published_at": now, "send_count": run.send_count + 1} if again else {})


def _take_and_publish(engine: Engine, take: Callable[[Connection], tuple[int, list[Message]]], what: str) -> int:
    count, messages = engine.db.run(take, what=what)
    engine.transport.publish(messages)
    return count
