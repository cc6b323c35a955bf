"""A blocked run: its code can't go on, and a deploy can cure that.

A blocked run keeps its status, its history and its inbox. It ignores wake-ups until its next try is due,
with back-off, or until its code has changed: the fingerprint of the workflow's module and the build id are
stored with the block, so fixed code un-blocks it at its first wake-up.
"""

from __future__ import annotations

import logging

from orchestrator.engine.core import PYTHON_VERSION, Engine
from orchestrator.engine.observers import RunNotice
from orchestrator.errors import ReplayError, UnknownWorkflowType
from orchestrator.model.failures import encode_failure, failure_from_exception
from orchestrator.model.records import Attention, RunRecord
from orchestrator.store import runs
from orchestrator.store.database import RunLock
from orchestrator.types import SECOND, Micros

logger = logging.getLogger(__name__)

FIRST_TRY_US: Micros = 1 * SECOND
LAST_TRY_US: Micros = 60 * SECOND
"""The delay between tries doubles from one second to one minute."""


def code_identity(engine: Engine, workflow_type: str) -> str:
    """Returns what changes when the code of a workflow type changes: build, Python and module source."""
    try:
        fingerprint = engine.registry.get(workflow_type).fingerprint
    except UnknownWorkflowType:
        fingerprint = "unknown"
    return f"{engine.settings.build_id}/{PYTHON_VERSION}/{fingerprint}"


def ignores_wakeups(engine: Engine, run: RunRecord, now: Micros) -> bool:
    """Tells whether a blocked run's next try is still ahead and its code is the one that failed."""
    if run.next_try_at is None or now >= run.next_try_at:
        return False
    return run.blocked_by == code_identity(engine, run.workflow_type)


def block(engine: Engine, lock: RunLock, run: RunRecord, error: ReplayError) -> RunNotice:
    """Blocks the run, in place of the decision that failed; its inbox stays as it is."""
    now = lock.now()
    next_try = now + min(LAST_TRY_US, FIRST_TRY_US * 2 ** min(run.blocked_count, 16))
    failure = encode_failure(engine.converter, failure_from_exception(error))
    values = {
        "attention": Attention.BLOCKED,
        "failure": failure,
        "blocked_by": code_identity(engine, run.workflow_type),
        "blocked_count": run.blocked_count + 1,
        "next_try_at": next_try,
        "next_send_at": next_try,
        "decision_token": engine.ids(),
    }
    runs.update(lock.connection(), run.run_id, values)
    lock.commit()
    reason = f"{type(error).__name__}: {error}"
    logger.warning(
        "Workflow %r (run %s) is blocked until its code is fixed. %s",
        run.workflow_id,
        run.run_id,
        reason,
    )
    return RunNotice(
        namespace=run.namespace,
        workflow_id=run.workflow_id,
        run_id=run.run_id,
        workflow_type=run.workflow_type,
        status=run.status,
        at=now,
        reason=reason,
    )
