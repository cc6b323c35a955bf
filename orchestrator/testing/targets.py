"""Which activity a test means."""

from __future__ import annotations

from celery import Task

from orchestrator.activity.calls import ActivityCalls
from orchestrator.activity.definition import ActivityDefinition
from orchestrator.activity.legacy import definition_of


def definition_behind(activity: object) -> ActivityDefinition | None:
    """Returns the definition of an activity (with options or without) or of a Celery task; None for anything else."""
    if isinstance(activity, ActivityCalls):
        return activity.definition
    return definition_of(activity) if isinstance(activity, Task) else None
