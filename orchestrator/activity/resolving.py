"""What workflow code means by a name or by a Celery signature: ``workflow.execute_activity(target, ...)``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from celery import Signature, Task, _state
from kombu import Queue

from orchestrator.activity.calls import ActivityCalls, ActivityReference
from orchestrator.activity.definition import ActivityDefinition, registry
from orchestrator.activity.legacy import definition_of
from orchestrator.errors import InvalidArgument
from orchestrator.model.names import check_duration, check_name
from orchestrator.model.options import ActivityOptions
from orchestrator.runtime.calls import set_activity_resolver
from orchestrator.types import Attributes

Resolved = tuple[ActivityCalls[..., Any], tuple[Any, ...], dict[str, Any]]

_FOR_US = ("queue", "priority")
_FOR_CELERY = ("time_limit", "soft_time_limit")
_CANVAS = ("celery.chain", "celery.group", "celery.chord", "celery.map", "celery.starmap", "celery.chunks")


def resolve(target: Any) -> Resolved:
    """Returns the activity that a value stands for, and the arguments it holds.

    Raises:
        InvalidArgument: It stands for none; the message says what to write.
    """
    if isinstance(target, ActivityCalls):
        return target, (), {}
    if isinstance(target, str):
        definition = _by_name(check_name(target, "activity"))
        return ActivityReference(definition, definition.options), (), {}
    if isinstance(target, Signature):
        return _of_signature(target)
    if isinstance(target, Task):
        definition = definition_of(target)
        return ActivityReference(definition, definition.options), (), {}
    raise InvalidArgument(
        "activity", f"give an activity, its name, or a signature of a Celery task, not {type(target).__name__}"
    )


def _by_name(name: str) -> ActivityDefinition:
    known = registry.get(name)
    if known is not None:
        return known
    task = _state.get_current_app().tasks.get(name)
    return definition_of(task) if task is not None else ActivityDefinition(name=name, function=None)


def _of_signature(signature: Signature[Any]) -> Resolved:
    name = str(signature.task)
    if name in _CANVAS:
        raise InvalidArgument(
            "activity",
            f"a {name.partition('.')[2]} can't be an activity: await its tasks one after another, or together with "
            "asyncio.gather()",
        )
    options = {key: value for key, value in dict(signature.options).items() if value is not None}
    unknown = sorted(set(options) - {*_FOR_US, *_FOR_CELERY, "task_id"})
    if unknown:
        raise InvalidArgument(
            unknown[0],
            f"of the signature can't be kept; a workflow's activity takes {', '.join((*_FOR_US, *_FOR_CELERY))} "
            "(wait with workflow.sleep(), go on with the next await)",
        )
    definition = _by_name(name)
    queue = options.get("queue")
    said = ActivityOptions(
        queue=queue.name if isinstance(queue, Queue) else queue,
        priority=options.get("priority"),
        legacy=definition.legacy,
        celery_options=_limits(options),
    )
    reference = ActivityReference[..., Any](definition, said.merged(definition.options))
    return reference, tuple(signature.args or ()), cast("dict[str, Any]", dict(signature.kwargs or {}))


def _limits(options: Attributes) -> Attributes:
    given = {key: options[key] for key in _FOR_CELERY if key in options}
    for key, value in given.items():
        if isinstance(value, timedelta):
            raise InvalidArgument(
                key, "of the signature: give a number of seconds, as Celery takes it, not a timedelta"
            )
        check_duration(value, key, allow_zero=False)
    return given


set_activity_resolver(cast("Any", resolve))
