"""Starting workflows and finding them again."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, overload

from orchestrator.client import reading
from orchestrator.client.arguments import check_optional_id, check_optional_name
from orchestrator.client.handle import WorkflowHandle
from orchestrator.client.starting import find_definition, start_request
from orchestrator.client.transactions import Uncommitted
from orchestrator.client.twins import twin
from orchestrator.engine import runs
from orchestrator.errors import UnknownWorkflowType
from orchestrator.model.names import check_choice, check_id, check_int, check_name
from orchestrator.model.options import IdReusePolicy
from orchestrator.model.records import Attention, RunStatus
from orchestrator.runtime.context import refuse_inside_workflow
from orchestrator.types import RunCoroutine

if TYPE_CHECKING:
    from orchestrator.client.views import Page
    from orchestrator.engine.core import Engine
    from orchestrator.model.payloads import CallSignature
    from orchestrator.runtime.definition import WorkflowDefinition

W = TypeVar("W")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class WorkflowClient:
    """What callers do: start workflows, find them, list them. Thread-safe; holds no connection between calls.

    Every method has an ``a``-prefixed twin to be awaited, except those that reach for nothing.

    Args:
        engine: Gives the engine; asked at each call, so that nothing is read before the first.
        sleep: Waits a number of seconds between two looks at a run; the test kit passes time instead.
    """

    def __init__(self, engine: Callable[[], Engine], *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._engine_provider = engine
        self._sleep = sleep
        self._uncommitted = Uncommitted()

    @property
    def _engine(self) -> Engine:
        return self._engine_provider()

    @overload
    def start(
        self,
        run: Callable[[*Ts], Coroutine[Any, Any, R]],
        /,
        *args: *Ts,
        id: str | None = None,
        queue: str | None = None,
        id_reuse_policy: IdReusePolicy | str = IdReusePolicy.USE_EXISTING,
        request_id: str | None = None,
        memo: Any = None,
        connection: Any = None,
    ) -> WorkflowHandle[None, R]: ...
    @overload
    def start(
        self,
        run: Callable[[W, *Ts], RunCoroutine[R]],
        /,
        *args: *Ts,
        id: str | None = None,
        queue: str | None = None,
        id_reuse_policy: IdReusePolicy | str = IdReusePolicy.USE_EXISTING,
        request_id: str | None = None,
        memo: Any = None,
        connection: Any = None,
    ) -> WorkflowHandle[W, R]: ...
    @overload
    def start(
        self,
        run: str,
        /,
        *args: Any,
        id: str | None = None,
        queue: str | None = None,
        id_reuse_policy: IdReusePolicy | str = IdReusePolicy.USE_EXISTING,
        request_id: str | None = None,
        memo: Any = None,
        connection: Any = None,
    ) -> WorkflowHandle[Any, Any]: ...
    def start(
        self,
        run: Any,
        /,
        *args: object,
        id: str | None = None,  # noqa: A002 - the field's standard name
        queue: str | None = None,
        id_reuse_policy: IdReusePolicy | str = IdReusePolicy.USE_EXISTING,
        request_id: str | None = None,
        memo: Any = None,
        connection: Any = None,
    ) -> WorkflowHandle[Any, Any]:
        """Starts a workflow, or finds the one that has its id: starting is idempotent on the id.

        An open run of the same type and input answers with its handle; of another type or input it is an
        error. What happens when the id's last run has closed is the policy's choice.

        Args:
            run: A function decorated with ``@workflow.defn``, a class's ``@workflow.run`` method, or a type's name.
            *args: The workflow's arguments.
            id: Workflow id; default a fresh UUIDv7.
            queue: Celery queue of its decisions; default the definition's, else as Celery routes them.
            id_reuse_policy: What to do when the last run of the id has closed.
            request_id: A repeated start with the same request id answers with the run that the first one made.
            memo: A JSON-able note, kept with the run and shown with it.
            connection: Your own SQLAlchemy connection or session, on the same database: the workflow starts if
                and when you commit. Call :meth:`flush` after the commit; else the sweep finds it within a second.

        Raises:
            InvalidArgument: An argument is refused; it is named, and nothing was stored.
            WorkflowAlreadyStarted: The id is taken, and the policy does not allow another run.
            InsideWorkflow: Workflow code called it.
            Unavailable: The database could not be reached.
        """
        refuse_inside_workflow("durable.start")
        engine = self._engine
        request, definition = start_request(
            engine,
            run,
            args,
            id=id,
            queue=queue,
            id_reuse_policy=id_reuse_policy,
            request_id=request_id,
            memo=memo,
        )
        if connection is None:
            result = runs.start(engine, request)
        else:
            with engine.db.transaction_of(connection) as conn:
                result = self._uncommitted.start(engine, conn, request)
        return WorkflowHandle(
            self,
            id=result.run.workflow_id,
            run_id=result.run.run_id,
            definition=definition,
            created=result.created,
        )

    astart = twin(start)

    def flush(self) -> None:
        """Wakes what was started and signalled with ``connection=``, after your commit. Harmless before it.

        Raises:
            Unavailable: The database could not be reached; the sweep does it then.
        """
        refuse_inside_workflow("durable.flush")
        self._uncommitted.flush(self._engine)

    aflush = twin(flush)

    def get_handle(self, id: str, run_id: str | None = None) -> WorkflowHandle[Any, Any]:  # noqa: A002
        """Returns the handle of a workflow, without looking whether it exists.

        Args:
            id: Workflow id.
            run_id: One of its runs; default the latest one, at each call of the handle.

        Raises:
            InvalidArgument: One of the ids can't be one.
        """
        refuse_inside_workflow("durable.get_handle")
        return WorkflowHandle(self, id=check_id(id, "id"), run_id=check_optional_id(run_id, "run_id"))

    @overload
    def get_handle_for(  # type: ignore[overload-overlap]  # the narrower one comes first
        self, run: Callable[[W, *Ts], RunCoroutine[R]], id: str, run_id: str | None = None
    ) -> WorkflowHandle[W, R]: ...
    @overload
    def get_handle_for(
        self, run: Callable[[*Ts], Coroutine[Any, Any, R]], id: str, run_id: str | None = None
    ) -> WorkflowHandle[None, R]: ...
    def get_handle_for(
        self,
        run: Any,
        id: str,  # noqa: A002
        run_id: str | None = None,
    ) -> WorkflowHandle[Any, Any]:
        """Returns the handle of a workflow of a known type, so that type checkers know its signals and result.

        Args:
            run: The workflow's function, or its class's ``@workflow.run`` method.
            id: Workflow id.
            run_id: One of its runs; default the latest one, at each call of the handle.

        Raises:
            InvalidArgument: It is no workflow, or one of the ids can't be one.
        """
        refuse_inside_workflow("durable.get_handle_for")
        workflow_id, checked_run_id = check_id(id, "id"), check_optional_id(run_id, "run_id")
        _, definition = find_definition(self._engine, run, queue=None)
        return WorkflowHandle(self, id=workflow_id, run_id=checked_run_id, definition=definition)

    def list(
        self,
        *,
        status: RunStatus | str | None = None,
        workflow_type: str | None = None,
        attention: Attention | str | None = None,
        workflow_id: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Lists runs of the namespace, newest first.

        Args:
            status: Only runs in this state.
            workflow_type: Only runs of this type.
            attention: Only runs with this attention, for example ``"blocked"``.
            workflow_id: Only runs of this workflow id.
            limit: At most so many runs, from 1 to 1000.
            cursor: The ``next_cursor`` of the page before.

        Raises:
            InvalidArgument: A filter is refused; it is named. A wrong filter never means "no filter".
        """
        refuse_inside_workflow("durable.list")
        filters = {
            "status": None if status is None else check_choice(status, "status", RunStatus),
            "workflow_type": check_optional_name(workflow_type, "workflow_type"),
            "attention": None if attention is None else check_choice(attention, "attention", Attention),
            "workflow_id": check_optional_id(workflow_id, "workflow_id"),
        }
        count = check_int(limit, "limit", minimum=1, maximum=reading.PAGE_LIMIT)
        return reading.list_page(self._engine, count, cursor, filters)

    alist = twin(list)  # noqa: A003 - our method is meant

    def typed_values(self, signature: CallSignature, values: Sequence[Any]) -> Sequence[Any]:
        """Returns plain JSON values as the types that the parameters of a signature declare.

        Args:
            signature: Of a definition, or of one of its signals or queries.
            values: Positional arguments.

        Raises:
            InvalidArgument: There are too many or too few, or one does not fit; the parameter is named.
        """
        slots, _ = signature.bind(values, {})
        converter, names = self._engine.converter, [slot.label for slot in slots]
        plain = converter.encode_args(values, (), names=names)
        return converter.decode_args(plain.data, [slot.hint for slot in slots], names=names)

    def definition_of(self, workflow_type: str) -> WorkflowDefinition | None:
        """Returns the code of a workflow type, or None when this process has none.

        Raises:
            InvalidArgument: It can't be a name.
        """
        try:
            return self._engine.registry.get(check_name(workflow_type, "workflow_type"))
        except UnknownWorkflowType:
            return None
