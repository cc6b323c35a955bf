"""Existing Celery tasks in workflow code, untouched.

A plain task keeps its retry rules, time limits, route and serializer. Its arguments reach it as Celery's
JSON would have brought them, whatever its annotations say, since it was written for that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from celery import Signature, Task
from typing_extensions import Unpack

from orchestrator.activity.calls import ActivityCalls, OptionArguments, make_options
from orchestrator.activity.definition import ActivityDefinition
from orchestrator.errors import InvalidArgument
from orchestrator.model.options import ActivityOptions
from orchestrator.model.payloads import CallSignature
from orchestrator.types import Attributes

P = ParamSpec("P")
R = TypeVar("R")


class TaskReference(ActivityCalls[P, R], Generic[P, R]):
    """A plain Celery task as an activity. The task is looked at when it is first called, not before.

    Args:
        task: The task.
        options: Options of this reference's calls.
    """

    def __init__(self, task: Task[P, R], options: ActivityOptions) -> None:
        self._task = task
        self._options = options

    @property
    def definition(self) -> ActivityDefinition:  # type: ignore[override]
        """The task as an activity."""
        return definition_of(self._task)

    @property
    def call_options(self) -> ActivityOptions:
        return self._options.merged(self.definition.options)

    @property
    def name(self) -> str:
        """Name of the task."""
        return self._task.name

    def __repr__(self) -> str:
        return f"<activity of Celery task {self.name!r}>"


def of(task: Task[P, R], /, **options: Unpack[OptionArguments]) -> TaskReference[P, R]:
    """Returns an existing Celery task as an activity that workflow code can call, typed as the task is.

    The task is not changed. It gets one attempt of ours unless ``retry_policy`` says otherwise, and no
    start-to-close time-out: its own ``self.retry()``, ``autoretry_for`` and time limits hold.

    Args:
        task: Made by ``@app.task`` or ``@shared_task``; bound, retrying, rate-limited, ``pydantic=True``, all work.
        **options: As in ``activity.defn``.

    Raises:
        InvalidArgument: Not a Celery task, or a wrong option.
    """
    # Asked of the type first: a lazy task that is only named here is not made yet.
    kind: type[Any] = type(task)
    if issubclass(kind, Signature):
        raise InvalidArgument(
            "task",
            f"give a Celery task, not a {kind.__name__.lstrip('_')}: activity.of(task) for each task of it, awaited "
            "one after another or with asyncio.gather(); the signature of one task goes to workflow.execute_activity()",
        )
    if not (hasattr(kind, "_get_current_object") or isinstance(task, Task)):
        raise InvalidArgument(
            "task", f"give a Celery task, not {kind.__name__}; a plain function becomes one with @activity.defn"
        )
    return TaskReference(task, make_options(options, legacy=True))


def definition_of(task: Task[..., Any]) -> ActivityDefinition:
    """Returns a task as an activity: the definition of one that is ours, else a plain task's."""
    task = getattr(task, "_get_current_object", lambda: task)()  # behind the proxy of a lazy or shared task
    own = getattr(task, "definition", None)
    if isinstance(own, ActivityDefinition):
        return own
    known: ActivityDefinition | None = task.__dict__.get("_orchestrator_definition")
    if known is None:
        run = inspect.getattr_static(type(task), "run")
        bound = not isinstance(run, (staticmethod, classmethod))
        function: Callable[..., Any] = run if bound else run.__func__
        known = ActivityDefinition(
            name=task.name,
            function=function,
            signature=CallSignature.of(function, skip_first=bound),
            options=ActivityOptions(legacy=True, celery_options=_facts_about(task)),
            legacy=True,
        )
        task.__dict__["_orchestrator_definition"] = known
    return known


def _facts_about(task: Task[..., Any]) -> Attributes:
    # Its own settings have Celery run it again when its process dies; the engine counts how often.
    return {"reruns_when_lost": True} if task.acks_late and task.reject_on_worker_lost else {}
