"""Answering queries in the caller's own process: the run is replayed from its history, and nothing is written.

It works on open and on closed runs, and needs the workflow's code to be importable here. Messages that no
decision has applied yet are not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.engine.advance import run_info
from orchestrator.errors import OrchestratorError, QueryError, UnknownWorkflowType
from orchestrator.model.events import RunStarted
from orchestrator.runtime.instance import Instance

if TYPE_CHECKING:
    from orchestrator.engine.core import Engine
    from orchestrator.model.events import Event
    from orchestrator.model.payloads import Payload
    from orchestrator.model.records import RunRecord
    from orchestrator.runtime.definition import WorkflowDefinition


def definition_for(engine: Engine, workflow_type: str) -> WorkflowDefinition:
    """Returns the code of a workflow type.

    Raises:
        QueryError: It is not known in this process.
    """
    try:
        return engine.registry.get(workflow_type)
    except UnknownWorkflowType as error:
        raise QueryError(
            f"A query replays the run in this process, which has no code of workflow type {workflow_type!r}. "
            "Import the module that defines it first."
        ) from error


def answer(engine: Engine, run: RunRecord, events: list[Event], name: str, arguments: Payload) -> Payload:
    """Returns the answer of a query.

    Raises:
        QueryError: The run can't be replayed here, there is no such query, or its handler failed.
    """
    definition = definition_for(engine, run.workflow_type)
    if not run.status.is_open and not any(isinstance(event.body, RunStarted) for event in events):
        raise QueryError(
            f"Workflow {run.workflow_id!r} (run {run.run_id}) ended before it began, so it has no answers."
        )
    instance = Instance(
        definition,
        run_info(run),
        run.input,
        converter=engine.converter,
        activity_defaults=engine.activity_defaults,
    )
    try:
        instance.replay(events)
    except OrchestratorError as error:
        raise QueryError(
            f"Workflow {run.workflow_id!r} (run {run.run_id}) can't be replayed with the code of this process: {error}"
        ) from error
    return instance.query(name, arguments.data)
