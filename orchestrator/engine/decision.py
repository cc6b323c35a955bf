"""The decision: the only writer of a run's history (protocol rules P1, P2, P4, P6).

One round takes the run's lock by a statement of its own, reads run, history and inbox by later
statements, advances workflow code over the new rows one at a time, and commits everything at once:

    lock ─► read run, history, inbox ─► replay, apply ─► [gate, late messages, redo] ─► write, commit ─► publish

Nothing is published before the commit. Whoever held the lock re-reads the inbox after its commit in a new
snapshot, because a sender that came meanwhile found the lock taken and went away; as long as there is
progress the same worker goes on, for a bounded number of rounds and time, then wakes another.

A decision that finds the lock taken ends at once. One whose code fails on something that a deploy can cure
blocks the run, which then ignores wake-ups until its next try is due or its code has changed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.engine import closing
from orchestrator.engine.advance import Advance, advance
from orchestrator.engine.blocking import block, ignores_wakeups
from orchestrator.engine.changes import Committed, commit
from orchestrator.engine.core import Engine
from orchestrator.engine.observers import RunNotice, notify
from orchestrator.engine.wakeups import wake
from orchestrator.errors import DecisionTimeout, ReplayError, Unavailable, WorkflowCodeError
from orchestrator.model.records import Attention, InboxRow, RunRecord, RunStatus
from orchestrator.store import inbox, runs
from orchestrator.store.database import RunLock
from orchestrator.store.failures import CommitUnknown, TryAgain

logger = logging.getLogger(__name__)

DRAIN_ROWS = 1000
"""Most inbox rows one decision drains, unless it closes the run."""
MAX_ROUNDS = 50
"""Most rounds one decision task makes before it wakes another."""
MAX_SECONDS = 5.0
"""Longest one decision task goes on before it wakes another."""
RESTART_PAUSE = 0.005
"""Seconds of pause per round made so far, after a round that was lost to somebody else's commit."""


class Outcome(StrEnum):
    """How a round of a decision ended."""

    DECIDED = "decided"
    """Something was committed; the inbox may hold more."""
    NOTHING = "nothing"
    """There was nothing to do."""
    TAKEN = "taken"
    """Somebody else holds the run."""
    GONE = "gone"
    """There is no such run."""
    CLOSED = "closed"
    """The run has ended; its inbox was emptied."""
    BLOCKED = "blocked"
    """The run's code can't go on."""
    OUTDATED = "outdated"
    """Somebody else committed in between; start over."""


_GOES_ON = frozenset({Outcome.DECIDED, Outcome.NOTHING, Outcome.CLOSED, Outcome.OUTDATED})


@dataclass(frozen=True, kw_only=True)
class _Round:
    outcome: Outcome
    committed: Committed | None = None
    notices: tuple[tuple[str, RunNotice], ...] = ()


def decide(engine: Engine, run_id: str) -> Outcome:
    """Decides a run until its inbox is empty, somebody else holds it, or the bounds are reached.

    Returns:
        How the first round ended that was not lost to another's commit.
    """
    started = engine.monotonic()
    first: Outcome | None = None
    for count in range(MAX_ROUNDS):
        done = _round(engine, run_id)
        _tell(engine, done)
        if first is None and done.outcome is not Outcome.OUTDATED:
            first = done.outcome
        if not _goes_on(engine, run_id, done.outcome):
            return first or done.outcome
        if done.outcome is Outcome.OUTDATED:
            engine.sleep(RESTART_PAUSE * count)
        if engine.monotonic() - started > MAX_SECONDS:
            break
    wake(engine, [run_id])
    return first or Outcome.OUTDATED


def _goes_on(engine: Engine, run_id: str, outcome: Outcome) -> bool:
    if outcome not in _GOES_ON and outcome is not Outcome.BLOCKED:
        return False
    with engine.db.read() as conn:
        if outcome is Outcome.BLOCKED:
            # Messages wait for the next try; what ends the run needs no code and must not wait for it.
            return inbox.first_of(conn, run_id, closing.ENDS_BY_ITSELF) is not None
        return inbox.exists(conn, run_id)


def _tell(engine: Engine, done: _Round) -> None:
    if done.committed is not None and done.committed.messages:
        engine.transport.publish(done.committed.messages)
    for hook, notice in done.notices:
        notify(engine.observers, hook, notice)


def _round(engine: Engine, run_id: str) -> _Round:
    try:
        with engine.db.lock_run(run_id) as lock:
            if lock is not None:
                return _decide_locked(engine, lock)
    except _BlockAnew as over:
        return _block_anew(engine, over)
    except TryAgain:
        # Nothing was committed; the caller starts over from what the database holds now.
        return _Round(outcome=Outcome.OUTDATED)
    # Looked up only after the connection was given back: no decision ever holds two.
    return _Round(outcome=_why_no_lock(engine, run_id))


def _why_no_lock(engine: Engine, run_id: str) -> Outcome:
    with engine.db.read() as conn:
        return Outcome.GONE if runs.get(conn, run_id) is None else Outcome.TAKEN


def _decide_locked(engine: Engine, lock: RunLock) -> _Round:
    run = lock.run()
    if not run.status.is_open:
        return _empty_closed(lock)
    rows = lock.inbox(DRAIN_ROWS)
    if len(rows) == DRAIN_ROWS and (ending := lock.first_of(closing.ENDS_BY_ITSELF)) is not None:
        # Terminating a run must not wait for code that can't get through what came before.
        rows += [ending] if ending not in rows else []
    if closing.ends_without_code(run, rows):
        return _finish(engine, lock, run, closing.end_without_code(run, lock, rows))
    if run.attention is Attention.BLOCKED and ignores_wakeups(engine, run, lock.now()):
        return _Round(outcome=Outcome.BLOCKED)
    if not rows and run.status is RunStatus.RUNNING and run.attention is not Attention.BLOCKED:
        return _Round(outcome=Outcome.NOTHING)
    return _advance(engine, lock, run, rows)


def _advance(engine: Engine, lock: RunLock, run: RunRecord, rows: list[InboxRow]) -> _Round:
    try:
        step = advance(engine, run, lock, rows)
        if step.closed:
            step = closing.behind_gate(engine, run, lock, step)
    except (TryAgain, Unavailable):
        raise
    except DecisionTimeout as error:
        raise _BlockAnew(run, error) from error
    except ReplayError as error:
        return _blocked(engine, lock, run, error)
    except Exception as error:  # noqa: BLE001 - blocks the run
        # Whatever else goes wrong in a replay is visible on the run, not only in a worker's log.
        unexpected = WorkflowCodeError(f"The decision failed with {type(error).__name__}: {error}")
        unexpected.__cause__ = error
        return _blocked(engine, lock, run, unexpected)
    return _finish(engine, lock, run, step)


class _BlockAnew(Exception):
    """The lock's transaction can't be used any more, so the block is written under a fresh lock.

    Either the code took so long that the database may have given the lock away, or the commit itself failed.
    """

    def __init__(self, run: RunRecord, error: ReplayError) -> None:
        super().__init__(error)
        self.run = run
        self.error = error


def _block_anew(engine: Engine, over: _BlockAnew) -> _Round:
    run = over.run
    try:
        with engine.db.lock_run(run.run_id) as lock:
            now_run = lock.run() if lock is not None else None
            if lock is None or now_run is None or _version(now_run) != _version(run):
                return _Round(outcome=Outcome.OUTDATED)
            return _blocked(engine, lock, now_run, over.error)
    except TryAgain:
        return _Round(outcome=Outcome.OUTDATED)


def _version(run: RunRecord) -> tuple[int, str]:
    return run.last_seq, run.decision_token


def _blocked(engine: Engine, lock: RunLock, run: RunRecord, error: ReplayError) -> _Round:
    notice = block(engine, lock, run, error)
    return _Round(outcome=Outcome.BLOCKED, notices=(("run_blocked", notice),))


def _finish(engine: Engine, lock: RunLock, run: RunRecord, step: Advance) -> _Round:
    token = engine.ids()
    try:
        changes = commit(engine, lock, run, step, token)
    except (TryAgain, Unavailable):
        raise
    except Exception as error:
        unstorable = WorkflowCodeError(f"The decision can't be stored: {type(error).__name__}: {error}")
        raise _BlockAnew(run, unstorable) from error
    try:
        lock.commit()
    except CommitUnknown:
        if not _was_committed(engine, run.run_id, token):
            return _Round(outcome=Outcome.OUTDATED)
    return _Round(outcome=Outcome.DECIDED, committed=changes, notices=_notices(run, step))


def _was_committed(engine: Engine, run_id: str, token: str) -> bool:
    # A commit whose answer was lost is looked up by the token that it would have written (P9).
    with engine.db.read() as conn:
        run = runs.get(conn, run_id)
    return run is not None and run.decision_token == token


def _notices(run: RunRecord, step: Advance) -> tuple[tuple[str, RunNotice], ...]:
    def notice(status: RunStatus, reason: str = "") -> RunNotice:
        return RunNotice(
            namespace=run.namespace,
            workflow_id=run.workflow_id,
            run_id=run.run_id,
            workflow_type=run.workflow_type,
            status=status,
            at=step.now,
            reason=reason,
        )

    started = (("run_started", notice(RunStatus.RUNNING)),) if run.status is RunStatus.PENDING else ()
    closed = (("run_closed", notice(step.status, step.close_reason)),) if step.closed else ()
    return started + closed


def _empty_closed(lock: RunLock) -> _Round:
    rows = lock.inbox(DRAIN_ROWS)
    if rows:
        inbox.delete(lock.connection(), [row.id for row in rows])
        lock.commit()
    return _Round(outcome=Outcome.CLOSED)
