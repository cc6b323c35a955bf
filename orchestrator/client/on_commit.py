"""Starting a workflow when Django's transaction commits, as ``delay_on_commit`` sends a task."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple, overload

from orchestrator.client.client import WorkflowClient
from orchestrator.client.handle import WorkflowHandle
from orchestrator.client.starting import start_request
from orchestrator.engine import runs
from orchestrator.model.options import IdReusePolicy
from orchestrator.runtime.context import refuse_inside_workflow
from orchestrator.types import RunCoroutine

W = TypeVar("W")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")

_DJANGO = "orchestrator.contrib.django"
"""A name, not an import: it stands above this module, needs an extra, and is loaded where Django is used."""


class CommitAwareClient(WorkflowClient):
    """A client that also starts workflows when Django's transaction commits."""

    @overload
    def start_on_commit(
        self,
        run: Callable[[*Ts], Coroutine[Any, Any, R]],
        /,
        *args: *Ts,
        id: str | None = None,
        queue: str | None = None,
        id_reuse_policy: IdReusePolicy | str = IdReusePolicy.USE_EXISTING,
        request_id: str | None = None,
        memo: Any = None,
        using: str | None = None,
        robust: bool = False,
    ) -> WorkflowHandle[None, R]: ...
    @overload
    def start_on_commit(
        self,
        run: Callable[[W, *Ts], RunCoroutine[R]],
        /,
        *args: *Ts,
        id: str | None = None,
        queue: str | None = None,
        id_reuse_policy: IdReusePolicy | str = IdReusePolicy.USE_EXISTING,
        request_id: str | None = None,
        memo: Any = None,
        using: str | None = None,
        robust: bool = False,
    ) -> WorkflowHandle[W, R]: ...
    @overload
    def start_on_commit(
        self,
        run: str,
        /,
        *args: Any,
        id: str | None = None,
        queue: str | None = None,
        id_reuse_policy: IdReusePolicy | str = IdReusePolicy.USE_EXISTING,
        request_id: str | None = None,
        memo: Any = None,
        using: str | None = None,
        robust: bool = False,
    ) -> WorkflowHandle[Any, Any]: ...
    def start_on_commit(
        self,
        run: Any,
        /,
        *args: object,
        id: str | None = None,  # noqa: A002 - the field's standard name
        queue: str | None = None,
        id_reuse_policy: IdReusePolicy | str = IdReusePolicy.USE_EXISTING,
        request_id: str | None = None,
        memo: Any = None,
        using: str | None = None,
        robust: bool = False,
    ) -> WorkflowHandle[Any, Any]:
        """Starts a workflow once Django's present transaction is committed, as :meth:`start` does.

        Everything given is checked now. Rolled back, it never starts; outside a transaction it starts at once. There
        is no twin to be awaited, since Django's transactions belong to a thread.

        A process that dies between the commit and the start leaves the workflow unstarted, as it would lose a task of
        ``delay_on_commit``. Starting again with the same id is harmless, so what must not be missed is looked for and
        started again: docs/django.md.

        Args:
            run: A function decorated with ``@workflow.defn``, a class's ``@workflow.run`` method, or a type's name.
            *args: The workflow's arguments.
            id: Workflow id; default a fresh UUIDv7. Fixed by this call.
            queue: As for :meth:`start`.
            id_reuse_policy: As for :meth:`start`.
            request_id: As for :meth:`start`.
            memo: As for :meth:`start`.
            using: Alias of the database whose transaction is meant; default Django's default one.
            robust: What an error at the start does, as in Django's ``on_commit``: False lets it out of the
                ``atomic`` block, where it keeps later calls of ``on_commit`` from being made; True logs it.

        Returns:
            The handle, to be used after the commit: until the start, it knows the workflow's id but neither ``run_id``
            nor ``created``, and finds the workflow only if there is an earlier run.

        Raises:
            InvalidArgument: An argument is refused; it is named, and nothing will start.
            InsideWorkflow: Workflow code called it.
            ImportError: Django is missing.
        """
        refuse_inside_workflow("durable.start_on_commit")
        django, engine = importlib.import_module(_DJANGO), self._engine
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
        handle = WorkflowHandle[Any, Any](self, id=request.workflow_id, definition=definition)

        def start() -> None:
            try:
                result = runs.start(engine, request)
            except Exception as error:
                error.add_note(f"The transaction is committed, but workflow {request.workflow_id!r} was not started.")
                raise
            handle.run_id, handle.created = result.run.run_id, result.created

        django.on_commit(start, using=using, robust=robust)
        return handle
