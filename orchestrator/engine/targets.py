"""Finding the lineage and the open run that a caller means.

A target is a workflow id (its current lineage) or a run id (the lineage of that run); delivery is to the
open leaf of the lineage (DESIGN §4).
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.errors import WorkflowNotFound
from orchestrator.model.records import RunRecord
from orchestrator.store import runs
from orchestrator.store.database import Connection

LOOKUPS = 3
"""How often an empty look-up of the open run is repeated in a new statement: a successor that commits
between two reads of one statement's snapshot is seen by the next (P6)."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Whom a call is for, within a namespace."""

    namespace: str
    workflow_id: str
    run_id: str | None = None

    def __str__(self) -> str:
        run = f", run {self.run_id}" if self.run_id else ""
        return f"workflow {self.workflow_id!r}{run} in namespace {self.namespace!r}"


def find_run(conn: Connection, target: Target) -> RunRecord:
    """Returns the run that is meant: that run id, else the latest run of the workflow id.

    Raises:
        WorkflowNotFound: There is none in this namespace.
    """
    if target.run_id is not None:
        run = runs.get(conn, target.run_id)
        # A run id of another namespace or workflow is answered like one that does not exist.
        if run is not None and (run.namespace, run.workflow_id) != (target.namespace, target.workflow_id):
            run = None
    else:
        run = runs.find_latest(conn, target.namespace, target.workflow_id)
    if run is None:
        raise WorkflowNotFound(f"There is no {target}. Check the id and the namespace, or start it first.")
    return run


def open_leaf(conn: Connection, lineage_id: str) -> RunRecord | None:
    """Returns the open run of a lineage, or None when the lineage has ended."""
    for _ in range(LOOKUPS):
        run = runs.open_leaf(conn, lineage_id)
        if run is not None:
            return run
    return None
