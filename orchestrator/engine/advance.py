"""Running workflow code over new inbox rows, one at a time (protocol rule P3).

Each row becomes one external event, applied alone; the commands that its activation emits are recorded
right behind it. A row about something already resolved or cancelled is discarded without an event. Nothing
here writes: the result is a value that :mod:`orchestrator.engine.changes` commits, or that is thrown away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.engine.core import Engine
from orchestrator.engine.watchdog import Watch, watched
from orchestrator.errors import HistoryLimitReached, MalformedCommand, OrchestratorError
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from orchestrator.model.records import InboxKind, InboxRow, RunRecord, RunStatus
from orchestrator.runtime.instance import Instance, RunInfo
from orchestrator.store.database import RunLock
from orchestrator.types import Micros

logger = logging.getLogger(__name__)

START = InboxRow(id=0, run_id="", kind=InboxKind.TIMER, created_at=0)
"""Stands for the start of ``run()`` among the rows to apply; it has no row of its own."""

_STATUS_OF: dict[type[ev.EventBody], RunStatus] = {
    ev.RunCompleted: RunStatus.COMPLETED,
    ev.RunFailed: RunStatus.FAILED,
    ev.RunCanceled: RunStatus.CANCELED,
    ev.RunTerminated: RunStatus.TERMINATED,
    ev.RunTimedOut: RunStatus.TIMED_OUT,
}


@dataclass(kw_only=True)
class Advance:
    """What a decision is about to commit.

    Attributes:
        now: The decision's time: the time of all its events.
        rows: All rows that were read, in the order they were (or were to be) applied.
        end: Index in ``rows`` of the row whose activation ended the run; None while it is open.
        bodies: The new events, in order.
        commands: The commands among them, in order.
        declared_signals: What the type declares now.
    """

    now: Micros
    rows: list[InboxRow]
    bodies: list[ev.EventBody] = field(default_factory=list)
    commands: list[cmd.Command] = field(default_factory=list)
    end: int | None = None
    declared_signals: tuple[str, ...] | None = None
    unhandled: tuple[str, ...] = ()

    @property
    def closed(self) -> bool:
        """True when the run ends with this decision."""
        return bool(self.bodies) and isinstance(self.bodies[-1], ev.RunClosed)

    @property
    def status(self) -> RunStatus:
        """The run's status after this decision."""
        return _STATUS_OF[type(self.bodies[-1])] if self.closed else RunStatus.RUNNING

    @property
    def close_reason(self) -> str:
        """The reason given with a cancellation or termination, else empty."""
        return getattr(self.bodies[-1], "reason", "") if self.closed else ""


def advance(engine: Engine, run: RunRecord, lock: RunLock, rows: Sequence[InboxRow]) -> Advance:
    """Replays the run and applies ``rows``; messages found at the first decision come before the start.

    Raises:
        ReplayError: The run's code can't go on; nothing may be committed.
    """
    ordered = list(rows)
    if run.status is RunStatus.PENDING and START not in ordered:
        ordered.append(START)
    step = Advance(now=max(run.last_event_at, lock.now()), rows=ordered)
    events = lock.events() if run.last_seq else []
    limit = engine.settings.decision_timeout.total_seconds()
    watched(limit, lambda watch: _apply(engine, run, step, events, _Pace(watch, lock)))
    _check_length(engine, run, step)
    return step


def _check_length(engine: Engine, run: RunRecord, step: Advance) -> None:
    """Warns once of a long history; a history at its limit takes only the events that end the run."""
    length, warn, limit = run.last_seq + len(step.bodies), engine.settings.history_warn, engine.settings.history_limit
    if length > limit and not step.closed:
        raise HistoryLimitReached(
            f"The history would hold {length} events; orchestrator_history_limit is {limit}. Raise the limit to let the "
            "run go on, or terminate it and split its work over several workflows."
        )
    if run.last_seq < warn <= length:
        logger.warning(
            "The history of workflow %r (run %s) holds %s events; each decision replays them. Split the work over "
            "several workflows before orchestrator_history_limit (%s) blocks the run.",
            run.workflow_id,
            run.run_id,
            length,
            limit,
        )


KEEP_ALIVE = 1.0
"""Seconds of workflow code after which the database is asked something, lest it take the decider for gone."""


class _Pace:
    """What happens before each activation: its time begins, and the database hears that the decider lives."""

    def __init__(self, watch: Watch, lock: RunLock) -> None:
        self._watch = watch
        self._lock = lock
        self._asked_at = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._asked_at > KEEP_ALIVE:
            self._watch.pause()
            self._lock.now()
            self._asked_at = time.monotonic()
        self._watch.renew()


def _apply(engine: Engine, run: RunRecord, step: Advance, events: Sequence[ev.Event], pace: _Pace) -> None:
    instance = _instance(engine, run)
    if events:
        instance.replay(events, pace)
    for index, row in enumerate(step.rows):
        body = event_of(row)
        if not instance.is_open(body):
            continue
        pace()
        issued = instance.apply(body, step.now)
        _record(step, body, issued)
        if instance.closed:
            step.end = index
            step.unhandled = tuple(instance.unhandled_signals)
            break
    step.declared_signals = instance.definition.declared_signals()


def _instance(engine: Engine, run: RunRecord) -> Instance:
    return Instance(
        engine.registry.get(run.workflow_type),
        run_info(run),
        run.input,
        converter=engine.converter,
        activity_defaults=engine.activity_defaults,
    )


def run_info(run: RunRecord) -> RunInfo:
    """Returns what workflow code is told about its run."""
    return RunInfo(
        workflow_id=run.workflow_id,
        run_id=run.run_id,
        workflow_type=run.workflow_type,
        namespace=run.namespace,
        queue=run.queue,
        lineage_id=run.lineage_id,
        started_at=run.created_at,
        memo=run.memo,
    )


def _record(step: Advance, body: ev.EventBody, issued: Sequence[cmd.Command]) -> None:
    step.bodies.append(body)
    closing_command: cmd.Command | None = None
    for command in issued:
        if closing_command is not None:
            raise MalformedCommand(
                f"{type(command).__name__} follows {type(closing_command).__name__} in one decision, but nothing can "
                "follow the command that ends a run. Remove one of them."
            )
        if type(command) not in KNOWN_COMMANDS:
            raise MalformedCommand(f"The engine does not know the command {type(command).__name__}.")
        if isinstance(command, cmd.CloseRun):
            closing_command = command
        step.bodies.append(command.event())
        step.commands.append(command)


KNOWN_COMMANDS = frozenset(
    {
        cmd.ScheduleActivity,
        cmd.CancelActivity,
        cmd.StartTimer,
        cmd.CancelTimer,
        cmd.OpenSignalWait,
        cmd.RecordSideEffect,
        cmd.CompleteRun,
        cmd.FailRun,
        cmd.CancelRun,
    }
)
"""What a decision may hold; the engine refuses anything else whole."""


def event_of(row: InboxRow) -> ev.EventBody:
    """Returns the external event that an inbox row becomes."""
    if row is START:
        return ev.RunStarted()
    attrs, payload, number = row.attrs, row.payload or b"", row.number or 0
    match row.kind:
        case InboxKind.SIGNAL:
            return ev.SignalReceived(name=attrs["name"], signal_id=attrs["signal_id"], payload=payload)
        case InboxKind.CANCEL:
            return ev.CancelRequested(reason=attrs["reason"])
        case InboxKind.TERMINATE:
            return ev.RunTerminated(reason=attrs["reason"])
        case InboxKind.DEADLINE:
            return ev.RunTimedOut()
        case InboxKind.TIMER:
            return ev.TimerFired(number=number)
        case InboxKind.ACTIVITY_COMPLETED:
            return ev.ActivityCompleted(number=number, attempt=attrs["attempt"], result=payload)
        case InboxKind.ACTIVITY_FAILED:
            return ev.ActivityFailed(number=number, attempt=attrs["attempt"], failure=payload)
    raise OrchestratorError(f"Inbox row {row.id} is of an unknown kind {row.kind!r}; run a newer worker.")
