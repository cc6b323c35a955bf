"""An activity is a Celery task: ``isinstance``, pickling, ``.delay``, ``.s()``, chains and groups work.

``@activity.defn`` does what Celery's ``shared_task`` does: every app, once finalized, gets one registered
task of its own; the object in the module stands for the current app's. What workflow code and a plain call
need is answered by that object itself, without touching an app, so importing a module configures nothing.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

from celery import Celery, Task, _state
from typing_extensions import Unpack

from orchestrator.activity import loop
from orchestrator.activity.calls import ActivityCalls, OptionArguments, make_options
from orchestrator.activity.context import ActivityInfo, RunningActivity, entered, maybe_running
from orchestrator.activity.definition import ActivityDefinition, define, registry
from orchestrator.errors import DuplicateDefinition, InsideWorkflow, InvalidArgument
from orchestrator.runtime.context import maybe_current

if TYPE_CHECKING:
    from celery.result import AsyncResult

P = ParamSpec("P")
R = TypeVar("R")


class Activity(ActivityCalls[P, R], Task[P, R]):
    """An activity, which is a Celery task.

    Call it from workflow code with ``execute``, ``start`` or ``with_options(...)``, and in no other way
    (:class:`~orchestrator.errors.InsideWorkflow`); anywhere else it is a task like any other (``delay``, ``s``,
    ``apply_async``), and calling it runs the function.
    """

    abstract = True
    # Delivery is ours whatever the app's settings say: the message is acknowledged when the outcome is
    # stored, and comes back when its process dies. How often that may happen is counted in the database.
    acks_late = True
    reject_on_worker_lost = True
    acks_on_failure = True
    acks_on_timeout = True
    acks_on_failure_or_timeout = True
    retry_on_worker_lost = False

    if TYPE_CHECKING:  # Celery's own; said here for type checkers that have no stubs of Celery
        name: str

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

        def delay(self, *args: P.args, **kwargs: P.kwargs) -> AsyncResult[R]: ...

    if not TYPE_CHECKING:  # Celery's own signature stays

        def apply_async(self, args: Any = None, kwargs: Any = None, task_id: str | None = None, **options: Any) -> Any:
            """Sends the task, as Celery does; Celery's own retry of a workflow's attempt goes without arguments.

            They are loaded by the claim, and may be values that only our converter can store.
            """
            _refuse_in_workflow(self.name, "sent")
            attempt = maybe_running()
            if attempt is None or attempt.info.task_id != task_id or attempt.info.workflow_id is None:
                return super().apply_async(args, kwargs, task_id=task_id, **options)
            sent = {**self._get_exec_options(), **options}
            return self._get_app().send_task(self.name, (), {}, task_id=task_id, task_type=self, **sent)


class AsyncActivity(Activity[P, R]):
    """An activity whose function is ``async``: calling it directly gives a coroutine."""

    abstract = True

    if TYPE_CHECKING:  # at run time Celery's own __call__ stays

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]: ...  # type: ignore[override]


class SharedActivity(ActivityCalls[P, R]):
    """Stands for the current app's task of an activity. Typed and used as :class:`Activity`."""

    def __init__(self, definition: ActivityDefinition) -> None:
        # Past our own __setattr__, which sets attributes of the task.
        for name in functools.WRAPPER_ASSIGNMENTS:
            self.__dict__[name] = getattr(definition.function, name)
        self.__dict__["__wrapped__"] = definition.function
        self.__dict__["definition"] = definition

    @property
    def name(self) -> str:
        """Name of the activity."""
        return self.definition.name

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return AsyncActivity if self.definition.is_async else Activity

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        _refuse_in_workflow(self.definition.name, "called directly")
        assert self.definition.function is not None
        return cast("R", self.definition.function(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(current_task_of(self.definition), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(current_task_of(self.definition), name, value)

    def __reduce__(self) -> Any:
        return current_task_of(self.definition).__reduce__()

    def __eq__(self, other: object) -> bool:
        return self.definition is getattr(other, "definition", None)

    def __hash__(self) -> int:
        return hash(self.definition.name)

    def __repr__(self) -> str:
        return f"<activity {self.name!r} of {self.__module__}>"


def current_task_of(definition: ActivityDefinition) -> Task[..., Any]:
    """Returns the current app's task of an activity."""
    return cast("Task[..., Any]", _state.get_current_app().tasks[definition.name])


@overload
def defn(function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncActivity[P, R]: ...


@overload
def defn(function: Callable[P, R], /) -> Activity[P, R]: ...


@overload
def defn(*, name: str | None = None, **options: Unpack[OptionArguments]) -> _Decorator: ...


def defn(function: Any = None, /, *, name: str | None = None, **options: Unpack[OptionArguments]) -> Any:
    """Makes a function an activity, which is a Celery task and keeps its outcome in workflow histories.

    Args:
        function: The function, ``def`` or ``async def``; all its parameters are annotated.
        name: Name in histories and of the Celery task; default the function's name. It must not change
            while runs are open, so it does not hold the module.
        **options: Defaults for calls from workflow code: ``queue``, ``retry_policy``,
            ``start_to_close_timeout``, ``schedule_to_start_timeout``, ``schedule_to_close_timeout``,
            ``heartbeat_timeout`` (timedelta or seconds) and ``priority`` (0 to 9).

    Raises:
        InvalidArgument: A wrong option, an un-annotated parameter, or something that is no function.
        DuplicateDefinition: Another place defines an activity of that name.
    """

    def decorate(target: Callable[..., Any]) -> Any:
        _refuse_task(target)
        definition = define(target, name=name, options=make_options(options))
        registry.add(definition)
        active: Iterable[Any] = cast("Any", _state)._get_active_apps()  # noqa: SLF001 - as shared_task does it
        for app in active:
            if app.finalized:
                with app._finalize_mutex:  # noqa: SLF001 - as shared_task does it
                    register(app, definition)
        return SharedActivity(definition)

    return decorate if function is None else decorate(function)


class _Decorator:
    """The type of ``defn(...)`` with options."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncActivity[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Activity[P, R]: ...

    def __call__(self, function: Any, /) -> Any:
        raise NotImplementedError


def _refuse_in_workflow(name: str, done: str) -> None:
    # It would have its effect again with each replay, and its outcome would not be recorded.
    if maybe_current() is not None:
        raise InsideWorkflow(
            f"The activity {name!r} is {done} by workflow code, which would repeat it with every replay. Write: "
            "await ….execute(…), or ….start(…) to go on meanwhile."
        )


def _refuse_task(target: object) -> None:
    if isinstance(target, Task):
        raise InvalidArgument(
            "function",
            f"{target.name!r} is a Celery task already. Leave it as it is and call it from workflow code through "
            "activity.of(task), or remove the other decorator.",
        )


_bases: weakref.WeakKeyDictionary[Celery, dict[bool, type[Any]]] = weakref.WeakKeyDictionary()


def _base_for(app: Celery, *, is_async: bool) -> type[Any]:
    """Returns the class of an app's activities: ours over the app's own ``Task`` (Django's, a team's)."""
    made = _bases.setdefault(app, {})
    if is_async not in made:
        ours: Any = AsyncActivity if is_async else Activity
        made[is_async] = type(ours.__name__, (ours, app.Task), {"abstract": True, "__module__": ours.__module__})
    return made[is_async]


def register(app: Celery, definition: ActivityDefinition) -> None:
    """Registers an activity's task in an app.

    Raises:
        DuplicateDefinition: The app has another task of that name.
    """
    inside: Any = app  # as shared_task does it; app.tasks would finalize the app
    known = inside._tasks.get(definition.name)  # noqa: SLF001 - as shared_task does it
    if known is not None:
        ours = getattr(known, "definition", None)
        if ours is definition:
            return
        if not isinstance(ours, ActivityDefinition):
            raise DuplicateDefinition(
                f"The activity {definition.name!r} of {definition.place} and a Celery task of {known.__module__} "
                f"share one name; give the activity another with @activity.defn(name=...)."
            )
        inside._tasks.unregister(definition.name)  # noqa: SLF001 - the module was imported again
    task = inside._task_from_fun(  # noqa: SLF001 - as shared_task does it
        definition.function,
        name=definition.name,
        base=_base_for(app, is_async=definition.is_async),
        definition=definition,
    )
    task.run = _body(task, task.run)


def _body(task: Task[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """Returns what the worker calls: the function, with an attempt to ask also outside a workflow."""

    @functools.wraps(run)
    def body(*args: Any, **kwargs: Any) -> Any:
        with entered(_attempt_of(task)):
            result = run(*args, **kwargs)
            return loop.run(result) if isinstance(result, Coroutine) else result

    return body


def _attempt_of(task: Task[..., Any]) -> RunningActivity:
    attempt, task_id = maybe_running(), task.request.id
    if attempt is not None and (task_id is None or attempt.info.task_id == task_id):
        return attempt
    return RunningActivity(
        ActivityInfo(
            activity=task.name,
            task_id=task_id or "",
            idempotency_key=task_id or "",
            attempt=(task.request.retries or 0) + 1,
        )
    )


@_state.connect_on_app_finalize
def _register_all(app: Celery) -> None:
    for definition in registry.all():
        register(app, definition)
