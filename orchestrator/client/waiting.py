"""Waiting for a run's end: looks that grow rarer, with no connection held in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn

from orchestrator.client.reading import failure_line, look
from orchestrator.client.twins import Pause
from orchestrator.engine.targets import Target
from orchestrator.errors import (
    ActivityError,
    FailureCause,
    WorkflowBlocked,
    WorkflowCanceled,
    WorkflowError,
    WorkflowFailed,
    WorkflowTerminated,
    WorkflowTimedOut,
)
from orchestrator.model.failures import Failure, decode_failure, exception_from_failure
from orchestrator.model.records import Attention, RunRecord, RunStatus

if TYPE_CHECKING:
    from orchestrator.client.twins import Pauses
    from orchestrator.engine.core import Engine

FIRST_PAUSE = 0.005
LONGEST_PAUSE = 0.25
GROWTH = 1.5
"""Seconds between two looks: short work is noticed at once, long waits cost four look-ups a second."""

RESOLUTION = 0.000_001
"""Seconds: less than a clock of microseconds can tell from nothing is nothing."""

OnBlocked = Literal["raise", "wait"]

_ENDED: dict[RunStatus, tuple[type[WorkflowError], str]] = {
    RunStatus.FAILED: (WorkflowFailed, "failed"),
    RunStatus.CANCELED: (WorkflowCanceled, "was cancelled"),
    RunStatus.TERMINATED: (WorkflowTerminated, "was terminated"),
    RunStatus.TIMED_OUT: (WorkflowTimedOut, "ran into its deadline"),
}


def wait_for_end(engine: Engine, target: Target, limit: float | None, on_blocked: OnBlocked) -> Pauses[RunRecord]:
    """Looks until the run, or the last one of its lineage, has completed; yields the pauses in seconds.

    Args:
        engine: The engine.
        target: The run.
        limit: Seconds to wait at most; None is no limit, 0 looks once.
        on_blocked: What to do about a blocked run.

    Raises:
        TimeoutError: The limit is reached.
        WorkflowError: It ended otherwise, or is blocked.
        WorkflowNotFound: There is no such run.
        Unavailable: The database could not be reached.
    """
    end = None if limit is None else engine.monotonic() + limit
    pause = FIRST_PAUSE
    run: RunRecord | None = None
    while True:
        run = look(engine, target, run)
        target = Target(namespace=target.namespace, workflow_id=target.workflow_id, run_id=run.run_id)
        if run.status is RunStatus.COMPLETED:
            return run
        if run.status is RunStatus.CONTINUED_AS_NEW and run.successor_run_id is not None:
            target = Target(namespace=target.namespace, workflow_id=target.workflow_id, run_id=run.successor_run_id)
            continue
        if run.status in _ENDED:
            _raise_ended(engine, run)
        if run.attention is Attention.BLOCKED and on_blocked == "raise":
            _raise_blocked(engine, run)
        left = None if end is None else end - engine.monotonic()
        if left is not None and left < RESOLUTION:
            raise TimeoutError(_not_done(run, limit))
        yield Pause(pause, left)
        pause = min(pause * GROWTH, LONGEST_PAUSE)


def _raise_ended(engine: Engine, run: RunRecord) -> NoReturn:
    kind, words = _ENDED[run.status]
    failure = _failure(engine, run)
    cause = None if failure is None else exception_from_failure(failure)
    assert cause is None or isinstance(cause, ActivityError | FailureCause)
    why = run.close_reason if failure is None else failure_line(failure)
    raise kind(
        f"Workflow {run.workflow_id!r} (run {run.run_id}) {words}{f': {why}' if why else '.'}",
        workflow_id=run.workflow_id,
        run_id=run.run_id,
        cause=cause,
    )


def _raise_blocked(engine: Engine, run: RunRecord) -> NoReturn:
    failure = _failure(engine, run)
    why = "" if failure is None else f" {failure_line(failure).rstrip('.')}."
    raise WorkflowBlocked(
        f"Workflow {run.workflow_id!r} (run {run.run_id}) is blocked until its code is fixed.{why} To wait for that: "
        'result(on_blocked="wait"), at the prompt --wait-when-blocked.',
        workflow_id=run.workflow_id,
        run_id=run.run_id,
    )


def _failure(engine: Engine, run: RunRecord) -> Failure | None:
    return None if run.failure is None else decode_failure(engine.converter, run.failure)


def _not_done(run: RunRecord, limit: Any) -> str:
    hint = (
        "no worker has begun it: is one running on its queue?"
        if run.status is RunStatus.PENDING
        else f"handle.describe(), or `workflow show {run.workflow_id}` at the prompt, tells what it waits for."
    )
    return f"Workflow {run.workflow_id!r} (run {run.run_id}) is {run.status} after {limit:g} s; {hint}"
