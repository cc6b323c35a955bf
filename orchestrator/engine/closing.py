"""How a run ends without losing a message that was accepted (protocol rule P6).

A decision that is about to close the run enters the lineage's gate in its exclusive form, before its first
write: senders hold the shared form until they commit, so from here on no new message can be accepted. What
was accepted but not applied, in this drain or found behind the gate, is then placed *before the event that
ended the run*, and the decision is made again from history, at most once and still behind the gate. What is
left unapplied after that is recorded before the closing event, where it can be seen.

Termination and a deadline run no code; a cancel closes a run that never started.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from orchestrator.engine.advance import START, Advance, advance, event_of
from orchestrator.engine.core import Engine
from orchestrator.model import events as ev
from orchestrator.model.records import InboxKind, InboxRow, RunRecord, RunStatus
from orchestrator.store.database import RunLock

logger = logging.getLogger(__name__)

ALL_ROWS = 1_000_000
"""A closing decision drains everything: no row may outlive the run."""

ENDS_BY_ITSELF = (InboxKind.TERMINATE, InboxKind.DEADLINE)
"""What ends a run without its code."""


def ends_without_code(run: RunRecord, rows: Sequence[InboxRow]) -> bool:
    """Tells whether the rows end the run without running any of its code."""
    if any(row.kind in ENDS_BY_ITSELF for row in rows):
        return True
    return run.status is RunStatus.PENDING and any(row.kind is InboxKind.CANCEL for row in rows)


def end_without_code(run: RunRecord, lock: RunLock, rows: list[InboxRow]) -> Advance:
    """Ends the run; messages that no code will see are recorded before the closing event."""
    lock.enter_gate(run.lineage_id)
    everything = rows + lock.inbox(ALL_ROWS, exclude={row.id for row in rows})
    step = Advance(now=max(run.last_event_at, lock.now()), rows=everything, declared_signals=run.declared_signals)
    ending = next((row for row in everything if row.kind in ENDS_BY_ITSELF), None)
    step.bodies.extend(event_of(row) for row in everything if row.kind in (InboxKind.SIGNAL, InboxKind.CANCEL))
    if ending is not None:
        step.bodies.append(event_of(ending))
    else:
        reason = next(row.attrs["reason"] for row in everything if row.kind is InboxKind.CANCEL)
        step.bodies.append(ev.RunCanceled(reason=reason))
    step.unhandled = tuple(row.attrs["name"] for row in everything if row.kind is InboxKind.SIGNAL)
    return step


def behind_gate(engine: Engine, run: RunRecord, lock: RunLock, step: Advance) -> Advance:
    """Enters the gate and makes sure that every accepted message is seen before the run ends.

    Raises:
        GateBusy: Senders hold the gate; the decision starts over.
    """
    lock.enter_gate(run.lineage_id)
    seen = {row.id for row in step.rows}
    late = lock.inbox(ALL_ROWS, exclude=seen)
    if ends_without_code(run, late):
        return end_without_code(run, lock, [row for row in step.rows if row is not START])
    assert step.end is not None
    unapplied = [row for row in step.rows[step.end + 1 :] + late if row.kind.is_message and row is not START]
    rest = [row for row in step.rows[step.end + 1 :] + late if row not in unapplied]
    if unapplied:
        ordered = step.rows[: step.end] + unapplied + [step.rows[step.end]] + rest
        step = advance(engine, run, lock, ordered)
    else:
        step.rows = step.rows + late
    return _with_unhandled_recorded(run, step)


def _with_unhandled_recorded(run: RunRecord, step: Advance) -> Advance:
    if not step.closed or step.end is None:
        return step
    left = [row for row in step.rows[step.end + 1 :] if row.kind.is_message and row is not START]
    closing_body = step.bodies.pop()
    step.bodies.extend(event_of(row) for row in left)
    step.bodies.append(closing_body)
    step.unhandled += tuple(row.attrs["name"] for row in left if row.kind is InboxKind.SIGNAL)
    if step.unhandled:
        logger.warning(
            "Workflow %r (run %s) ended with unhandled signals: %s. Wait for workflow.wait_condition or drain them "
            "before returning.",
            run.workflow_id,
            run.run_id,
            ", ".join(sorted(set(step.unhandled))),
        )
    return step
