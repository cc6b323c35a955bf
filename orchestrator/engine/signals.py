"""Accepting a signal (DESIGN §4, protocol rule P6).

The check order is fixed: duplicate → closed → declared → build → store. The sender holds the lineage's
gate in its shared form; a closing decision holds the exclusive form before its first write, so a signal
is either in the inbox when the run closes, and then seen, or refused as closed.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.engine.core import Engine
from orchestrator.engine.targets import Target, find_run, open_leaf
from orchestrator.engine.wakeups import wake, wake_for_row
from orchestrator.errors import (
    InboxFull,
    SignalConflict,
    UndeclaredSignal,
    UnknownWorkflowType,
    WorkflowClosed,
)
from orchestrator.model.payloads import Payload
from orchestrator.model.records import InboxKind, RunRecord, SignalKey
from orchestrator.store import inbox, signals
from orchestrator.store.database import Connection


@dataclass(frozen=True, kw_only=True)
class SignalRequest:
    """A signal as its sender gave it; ``payload`` encodes the JSON array of its arguments."""

    target: Target
    name: str
    signal_id: str
    payload: Payload


@dataclass(frozen=True, kw_only=True)
class SignalResult:
    """What became of a signal.

    Attributes:
        stored: True when this call stored it; False for a redelivery.
        run_id: The run in which this call stored it; None for a redelivery.
    """

    stored: bool
    run_id: str | None


@dataclass(frozen=True, kw_only=True)
class Sent:
    """An accepted signal, before its commit: what to answer, and what to wake afterwards."""

    result: SignalResult
    wake_run: str | None
    row_id: int | None = None


def send(engine: Engine, request: SignalRequest) -> SignalResult:
    """Accepts a signal, durably, and wakes the run.

    Raises:
        WorkflowNotFound: There is no such workflow or run.
        SignalConflict: The id was used before for another name or payload.
        WorkflowClosed: The lineage has ended and the signal is new.
        UndeclaredSignal: The workflow type declares no such signal.
        InboxFull: The run holds too many undelivered messages.
    """
    sent = engine.db.run(lambda conn: accept(engine, conn, request), what="signal")
    wake_for_sent(engine, sent)
    return sent.result


def wake_for_sent(engine: Engine, sent: Sent) -> None:
    """Wakes the run of a signal that was just committed; a redelivery wakes it too."""
    if sent.row_id is not None and sent.wake_run is not None:
        wake_for_row(engine, sent.wake_run, sent.row_id)
    elif sent.wake_run is not None:
        wake(engine, [sent.wake_run])


def accept(engine: Engine, conn: Connection, request: SignalRequest) -> Sent:
    """Accepts a signal in an open transaction; errors as :func:`send`."""
    lineage_id = find_run(conn, request.target).lineage_id
    signals.enter_gate_shared(conn, lineage_id)
    known = signals.key(conn, lineage_id, request.signal_id)
    if known is not None:
        return _redelivered(conn, known, request)
    leaf = open_leaf(conn, lineage_id)
    if leaf is None:
        raise WorkflowClosed(f"The {request.target} has ended and takes no more signals. Start a new run.")
    _check_declared(engine, leaf, request.name)
    _check_room(engine, conn, leaf)
    now = engine.db.now(conn)
    key = SignalKey(
        lineage_id=lineage_id,
        signal_id=request.signal_id,
        name=request.name,
        digest=request.payload.digest,
        run_id=leaf.run_id,
        at=now,
    )
    if not signals.insert_key(conn, key):
        # Somebody else's send of this id committed in between; a new statement sees it.
        known = signals.key(conn, lineage_id, request.signal_id)
        assert known is not None
        return _redelivered(conn, known, request)
    row_id = inbox.insert(
        conn,
        leaf.run_id,
        InboxKind.SIGNAL,
        attrs={"name": request.name, "signal_id": request.signal_id},
        payload=request.payload.data,
        now=now,
        next_send_at=now + engine.settings.micros("resend_after"),
    )
    return Sent(result=SignalResult(stored=True, run_id=leaf.run_id), wake_run=leaf.run_id, row_id=row_id)


def _redelivered(conn: Connection, known: SignalKey, request: SignalRequest) -> Sent:
    if (known.name, known.digest) != (request.name, request.payload.digest):
        raise SignalConflict(
            f"Signal id {request.signal_id!r} was sent to run {known.run_id} before, as {known.name!r} with "
            f"{'the same' if known.digest == request.payload.digest else 'another'} payload. Use a new signal id.",
            run_id=known.run_id,
        )
    leaf = open_leaf(conn, known.lineage_id)
    return Sent(result=SignalResult(stored=False, run_id=None), wake_run=leaf.run_id if leaf else None)


def _check_declared(engine: Engine, run: RunRecord, name: str) -> None:
    declared = run.declared_signals
    if declared is None and run.last_seq == 0:
        # Not decided yet, so the run has recorded nothing: the caller's own code tells, if it has it.
        try:
            declared = engine.registry.get(run.workflow_type).declared_signals()
        except UnknownWorkflowType:
            return
    if declared is not None and name not in declared:
        known = ", ".join(repr(item) for item in declared)
        raise UndeclaredSignal(
            f"Workflow type {run.workflow_type!r} declares no signal {name!r}; it declares {known}. Add a handler, or "
            f"signals={{{name!r}: type}} to @workflow.defn."
        )


def _check_room(engine: Engine, conn: Connection, run: RunRecord) -> None:
    limit = engine.settings.inbox_limit
    if inbox.count(conn, run.run_id, limit) >= limit:
        raise InboxFull(
            f"Run {run.run_id} of workflow {run.workflow_id!r} holds {limit} undelivered messages "
            "(orchestrator_inbox_limit). Check that a worker serves its queue, then send again."
        )
