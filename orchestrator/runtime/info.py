"""Facts about a run: what the engine knows of it, and what ``workflow.info()`` shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.model.payloads import PayloadConverter
from orchestrator.types import Micros, to_datetime


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What an execution is told about its run; ``started_at`` is when the run was created."""

    workflow_id: str
    run_id: str
    workflow_type: str
    namespace: str
    queue: str
    lineage_id: str
    started_at: Micros
    memo: bytes | None = None
    """Encoded."""


@dataclass(frozen=True, kw_only=True)
class WorkflowInfo:
    """Facts about the running workflow.

    Attributes:
        workflow_id: The id that the caller gave, or one that was made.
        run_id: The run, unique for ever.
        workflow_type: Name of the workflow type.
        namespace: Namespace of the run.
        queue: Queue of its decisions.
        lineage_id: Run id of the first run of the lineage.
        started_at: When the run was created, in UTC.
        memo: What the start gave as ``memo=``, as plain JSON.
    """

    workflow_id: str
    run_id: str
    workflow_type: str
    namespace: str
    queue: str
    lineage_id: str
    started_at: datetime
    memo: Any = None


def public_info(info: RunInfo, converter: PayloadConverter) -> WorkflowInfo:
    """Returns the public form."""
    return WorkflowInfo(
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        workflow_type=info.workflow_type,
        namespace=info.namespace,
        queue=info.queue,
        lineage_id=info.lineage_id,
        started_at=to_datetime(info.started_at),
        memo=None if info.memo is None else converter.decode(info.memo, argument="memo"),
    )
