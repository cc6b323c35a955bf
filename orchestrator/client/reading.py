"""Reads behind the client's answers; each is one short transaction of its own that writes nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from orchestrator.client.views import (
    ActivityDescription,
    HistoryEvent,
    HistoryPage,
    Page,
    TimerDescription,
    WaitDescription,
    WorkflowDescription,
    WorkflowSummary,
)
from orchestrator.engine.targets import Target, find_run
from orchestrator.errors import InvalidArgument, PayloadError
from orchestrator.model import events as ev
from orchestrator.model.failures import Failure, decode_failure
from orchestrator.model.names import check_id, check_int
from orchestrator.model.records import ActivityRecord, ActivityState, Attention, RunRecord
from orchestrator.store import activities, history, inbox, runs, timers
from orchestrator.types import Micros, to_datetime

if TYPE_CHECKING:
    from orchestrator.engine.core import Engine
    from orchestrator.store.database import Connection

PAGE_LIMIT = 1000
"""Most runs or events one answer holds (A26)."""
LARGEST = 2**63 - 1
"""Largest number that the databases hold."""
INBOX_COUNT_LIMIT = 10_000
"""Messages are counted no further than this."""


def load_run(engine: Engine, target: Target) -> RunRecord:
    """Returns the run that is meant.

    Raises:
        WorkflowNotFound: There is none.
        Unavailable: The database could not be reached.
    """
    return engine.db.query(lambda conn: find_run(conn, target), what="look up a workflow")


def look(engine: Engine, target: Target, known: RunRecord | None) -> RunRecord:
    """Returns the run that is meant; ``known`` itself, at the cost of one small row, when nothing has changed.

    Raises:
        WorkflowNotFound: There is none.
        Unavailable: The database could not be reached.
    """

    def read(conn: Connection) -> RunRecord:
        if known is None or known.run_id != target.run_id:
            return find_run(conn, target)
        unchanged = runs.version(conn, known.run_id) == (known.last_seq, known.decision_token)
        return known if unchanged else find_run(conn, target)

    return engine.db.query(read, what="look at a workflow")


def list_page(engine: Engine, limit: int, cursor: str | None, filters: dict[str, Any]) -> Page:
    """Returns some runs of the namespace, newest first, and where the next ones begin."""
    after = None if cursor is None else _read_cursor(cursor)

    def read(conn: Connection) -> list[RunRecord]:
        return runs.list_runs(conn, engine.settings.namespace, limit=limit + 1, cursor=after, **filters)

    found = engine.db.query(read, what="list workflows")
    more = found[limit - 1] if len(found) > limit else None
    return Page(
        items=[WorkflowSummary(**_summary(run)) for run in found[:limit]],
        next_cursor=None if more is None else _write_cursor(more.created_at, more.run_id),
    )


def _write_cursor(created_at: Micros, run_id: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([created_at, run_id]).encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[Micros, str]:
    try:
        created_at, run_id = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
        return check_int(created_at, "cursor", minimum=0, maximum=LARGEST), check_id(run_id, "cursor")
    except (ValueError, TypeError, RecursionError):
        pass
    raise InvalidArgument("cursor", "is not one; pass the next_cursor of an earlier page, or None for the first page")


def history_page(engine: Engine, target: Target, after: int | None, limit: int, descending: bool) -> HistoryPage:
    """Returns some events of a run, and where the next ones begin."""

    def read(conn: Connection) -> tuple[str, list[ev.Event]]:
        run = find_run(conn, target)
        bounds = {"before": after} if descending else {"after": after or 0}
        return run.run_id, history.read(conn, run.run_id, limit=limit + 1, descending=descending, **bounds)

    run_id, events = engine.db.query(read, what="read a history")
    shown = [_event_view(engine, event) for event in events[:limit]]
    return HistoryPage(run_id=run_id, events=shown, next_cursor=shown[-1].seq if len(events) > limit else None)


def _event_view(engine: Engine, event: ev.Event) -> HistoryEvent:
    kind, attributes, payload = ev.to_stored(event.body)
    return HistoryEvent(
        seq=event.seq,
        at=to_datetime(event.at),
        kind=kind,
        attributes=attributes,
        payload=plain(engine, payload),
    )


def plain(engine: Engine, payload: bytes | None) -> Any:
    """Returns a stored payload as plain JSON; one that can't be read tells so instead of failing the answer."""
    if payload is None:
        return None
    try:
        return engine.converter.decode(payload)
    except PayloadError as error:
        return {"unreadable": str(error)}


def load_for_replay(engine: Engine, target: Target) -> tuple[RunRecord, list[ev.Event]]:
    """Returns a run and its whole history, of one snapshot."""

    def read(conn: Connection) -> tuple[RunRecord, list[ev.Event]]:
        # History is append-only and read after the run, so it holds at least what the run's row says.
        run = find_run(conn, target)
        return run, history.read(conn, run.run_id)

    return engine.db.query(read, what="read a history")


def describe(engine: Engine, target: Target) -> WorkflowDescription:
    """Returns everything about one run."""

    def read(conn: Connection) -> WorkflowDescription:
        run = find_run(conn, target)
        open_activities = activities.open_of_run(conn, run.run_id)
        open_timers = timers.of_run(conn, run.run_id)
        waits = _open_waits(history.read(conn, run.run_id)) if run.status.is_open else []
        pending = inbox.count(conn, run.run_id, INBOX_COUNT_LIMIT)
        now = engine.db.now(conn)
        wakeups = _wakeups(run, open_activities, [due for _, _, due in open_timers], now)
        blocked = run.attention is Attention.BLOCKED
        failure = _failure_text(engine, run.failure)
        return WorkflowDescription(
            **_summary(run),
            lineage_id=run.lineage_id,
            history_length=run.last_seq,
            input=plain(engine, run.input),
            memo=plain(engine, run.memo),
            activities=[_activity_view(engine, item, now) for item in open_activities],
            timers=[TimerDescription(number=number, due_at=to_datetime(due)) for _, number, due in open_timers],
            waits=waits,
            pending_messages=pending,
            next_wakeup_at=_instant(min(wakeups, default=None)),
            blocked_reason=failure if blocked else None,
            failure=None if blocked else failure,
            close_reason=run.close_reason,
            previous_run_id=run.previous_run_id,
            successor_run_id=run.successor_run_id,
            declared_signals=run.declared_signals,
            build_id=run.build_id,
        )

    return engine.db.query(read, what="describe a workflow")


def _summary(run: RunRecord) -> dict[str, Any]:
    return {
        "id": run.workflow_id,
        "run_id": run.run_id,
        "type": run.workflow_type,
        "namespace": run.namespace,
        "status": run.status,
        "attention": run.attention,
        "queue": run.queue,
        "created_at": to_datetime(run.created_at),
        "started_at": _instant(run.started_at),
        "closed_at": _instant(run.closed_at),
    }


def _instant(value: Micros | None) -> datetime | None:
    return None if value is None else to_datetime(value)


def _failure_text(engine: Engine, encoded: bytes | None) -> str | None:
    if encoded is None:
        return None
    try:
        return failure_line(decode_failure(engine.converter, encoded))
    except PayloadError as error:
        return f"unreadable: {error}"


def failure_line(failure: Failure) -> str:
    """Returns a failure as one text, with the members of a group."""
    line = f"{failure.type}: {failure.message}"
    if failure.extra:
        line += f" [{'; '.join(failure_line(member) for member in failure.extra)}]"
    return line


def _activity_view(engine: Engine, row: ActivityRecord, now: Micros) -> ActivityDescription:
    waits = row.state is ActivityState.SCHEDULED and row.attempt_scheduled_at > now
    return ActivityDescription(
        number=row.number,
        name=row.name,
        queue=row.queue,
        state=row.state,
        attempt=row.attempt,
        scheduled_at=to_datetime(row.scheduled_at),
        started_at=_instant(row.started_at) if row.state is ActivityState.STARTED else None,
        next_attempt_at=to_datetime(row.attempt_scheduled_at) if waits else None,
        worker=row.worker_id if row.state is ActivityState.STARTED else None,
        last_error=_failure_text(engine, row.last_failure),
        cancel_requested=row.cancel_requested,
    )


def _wakeups(
    run: RunRecord, open_activities: Sequence[ActivityRecord], due: Sequence[Micros], now: Micros
) -> list[Micros]:
    """Returns when the run goes on without a message from outside: timers, retries, deadlines, tries."""
    if not run.status.is_open:
        return []
    instants: list[Micros | None] = [*due, run.deadline_at]
    if run.attention is Attention.BLOCKED:
        instants.append(run.next_try_at)
    for row in open_activities:
        instants.append(row.deadline_at)
        if row.state is ActivityState.SCHEDULED and row.attempt_scheduled_at > now:
            instants.append(row.attempt_scheduled_at)
    return [instant for instant in instants if instant is not None]


def _open_waits(events: Sequence[ev.Event]) -> list[WaitDescription]:
    """Returns the waits that history leaves open: each signal goes to the oldest wait of its name (F05)."""
    waits: dict[int, WaitDescription] = {}
    buffered: dict[str, int] = {}
    for event in events:
        body = event.body
        if isinstance(body, ev.SignalReceived):
            _deliver(waits, buffered, body.name)
        elif isinstance(body, ev.SignalWaitOpened):
            if buffered.get(body.name):
                buffered[body.name] -= 1
            else:
                waits[body.number] = WaitDescription(number=body.number, name=body.name, timer=body.timer)
        elif isinstance(body, ev.TimerFired | ev.TimerCancelled):
            ended = body.number if isinstance(body, ev.TimerFired) else body.target
            for number in [number for number, wait in waits.items() if wait.timer == ended]:
                del waits[number]
        elif isinstance(body, ev.CancelRequested):
            # Cancelling the run cancels its open waits (F09); what its clean-up opens follows.
            waits.clear()
    return list(waits.values())


def _deliver(waits: dict[int, WaitDescription], buffered: dict[str, int], name: str) -> None:
    number = next((number for number, wait in waits.items() if wait.name == name), None)
    if number is None:
        buffered[name] = buffered.get(name, 0) + 1
    else:
        del waits[number]
