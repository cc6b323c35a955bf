"""The handle of one workflow: what callers hold on to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

from orchestrator.client import querying, reading
from orchestrator.client.arguments import (
    REASON_LIMIT,
    check_on_blocked,
    check_optional_id,
    check_timeout,
    encode,
)
from orchestrator.client.handlers import check_message, query_of, signal_of
from orchestrator.client.transactions import signal_within
from orchestrator.client.twins import twin, waiting
from orchestrator.client.views import SignalReceipt
from orchestrator.client.waiting import wait_for_end
from orchestrator.engine import runs, signals
from orchestrator.engine.signals import SignalRequest
from orchestrator.engine.targets import Target, find_run
from orchestrator.model.names import check_flag, check_int, check_text
from orchestrator.runtime.context import refuse_inside_workflow

if TYPE_CHECKING:
    from orchestrator.client.client import WorkflowClient
    from orchestrator.client.twins import Pauses
    from orchestrator.client.views import HistoryPage, WorkflowDescription
    from orchestrator.client.waiting import OnBlocked
    from orchestrator.engine.core import Engine
    from orchestrator.runtime.definition import WorkflowDefinition
    from orchestrator.store.database import Connection

W = TypeVar("W")
R = TypeVar("R")
A = TypeVar("A")
Ts = TypeVarTuple("Ts")


class WorkflowHandle(Generic[W, R]):
    """One workflow, open or closed. Cheap to make, safe to share between threads, holds no connection.

    ``W`` is the workflow's class (None for a function) and ``R`` its result, for type checkers: ``signal`` and
    ``query`` take the class's own methods and check their arguments.

    Every method has an ``a``-prefixed twin to be awaited. No method may be called in workflow code
    (:class:`~orchestrator.errors.InsideWorkflow`). Each raises :class:`~orchestrator.errors.WorkflowNotFound` for a
    workflow that does not exist, and :class:`~orchestrator.errors.Unavailable` when the database can't be reached.

    Attributes:
        id: Workflow id.
        run_id: The run this handle means; None for the latest run of the id.
        created: True when the start that answered with this handle made the run; False when it found it;
            None for a handle that no start gave.
    """

    def __init__(
        self,
        client: WorkflowClient,
        *,
        id: str,  # noqa: A002 - the field's standard name
        run_id: str | None = None,
        definition: WorkflowDefinition | None = None,
        created: bool | None = None,
        plain_values: bool = False,
    ) -> None:
        self.id = id
        self.run_id = run_id
        self.created = created
        self._client = client
        self._definition = definition
        self._plain_values = plain_values

    def __repr__(self) -> str:
        return f"<WorkflowHandle id={self.id!r} run_id={self.run_id!r}>"

    def with_plain_values(self) -> WorkflowHandle[Any, Any]:
        """Returns a handle of the same run whose results and query answers are plain JSON, not typed values."""
        return WorkflowHandle(
            self._client,
            id=self.id,
            run_id=self.run_id,
            definition=self._definition,
            created=self.created,
            plain_values=True,
        )

    # --- its end ----------------------------------------------------------------------------------

    @waiting
    def result(self, timeout: timedelta | float | None = None, *, on_blocked: OnBlocked = "raise") -> Pauses[R]:
        """Waits for the workflow to complete and returns its result.

        It looks more and more rarely (from 5 ms to 250 ms apart) and holds no connection in between.

        Args:
            timeout: Longest wait, a timedelta or seconds; None waits for ever, 0 looks once.
            on_blocked: ``"raise"`` ends the wait when the workflow is blocked until its code is fixed;
                ``"wait"`` waits on.

        Raises:
            WorkflowFailed: It failed; ``cause`` is the error behind it, with its own causes.
            WorkflowCanceled: It was cancelled.
            WorkflowTerminated: It was terminated.
            WorkflowTimedOut: It ran into its deadline.
            WorkflowBlocked: It is blocked.
            TimeoutError: It is not done in time; it goes on.
        """
        refuse_inside_workflow("handle.result")
        limit, choice = check_timeout(timeout), check_on_blocked(on_blocked)
        engine = self._engine
        run = yield from wait_for_end(engine, self._target, limit, choice)
        hint = self._result_hint(run.workflow_type)
        value: R = engine.converter.decode(run.result or b"", hint, argument="result")
        return value

    aresult = twin(result)

    # --- messages to it -----------------------------------------------------------------------------

    @overload
    def signal(
        self, signal: Callable[[W, *Ts], Any], /, *args: *Ts, signal_id: str | None = None, connection: Any = None
    ) -> SignalReceipt: ...
    @overload
    def signal(
        self, signal: str, /, *args: Any, signal_id: str | None = None, connection: Any = None
    ) -> SignalReceipt: ...
    def signal(
        self, signal: Any, /, *args: object, signal_id: str | None = None, connection: Any = None
    ) -> SignalReceipt:
        """Sends a signal; it is durable when this returns.

        Args:
            signal: A ``@workflow.signal`` method of the workflow's class, or a signal's name.
            *args: The signal's arguments.
            signal_id: Sending the same id again, with the same content, stores nothing and succeeds. Default: a
                fresh one.
            connection: Your own SQLAlchemy connection or session, on the same database: the signal is sent if
                and when you commit, and delivered by ``durable.flush()`` after that, or by the sweep. A signal that
                turns out to be refused then is logged.

        Returns:
            Whether this call stored it, and in which run; with ``connection``, the run is not known yet.

        Raises:
            InvalidArgument: An argument is refused; it is named.
            WorkflowClosed: The workflow has ended.
            UndeclaredSignal: It declares signals, but none of this name.
            SignalConflict: The id was used for other content.
            InboxFull: Too many messages wait for it.
        """
        refuse_inside_workflow("handle.signal")
        engine = self._engine
        message_id = check_optional_id(signal_id, "signal_id") or engine.ids()
        if connection is not None:
            with engine.db.transaction_of(connection) as conn:
                request = self._signal_request(engine, signal, args, message_id, conn)
                signal_within(engine, conn, request)
            return SignalReceipt(signal_id=message_id, stored=True, run_id=None)
        result = signals.send(engine, self._signal_request(engine, signal, args, message_id, None))
        return SignalReceipt(signal_id=message_id, stored=result.stored, run_id=result.run_id)

    asignal = twin(signal)

    @overload
    def query(self, query: Callable[[W, *Ts], A], /, *args: *Ts) -> A: ...
    @overload
    def query(self, query: str, /, *args: Any) -> Any: ...
    def query(self, query: Any, /, *args: object) -> Any:
        """Asks the workflow for something without changing it; works on a closed one too.

        The run is replayed in this process, so its code must be importable here.

        Args:
            query: A ``@workflow.query`` method of the workflow's class, or a query's name.
            *args: The query's arguments.

        Raises:
            InvalidArgument: An argument is refused; it is named.
            QueryError: There is no such query, its handler failed, or the run can't be replayed here.
        """
        refuse_inside_workflow("handle.query")
        check_message(query, "query")
        engine = self._engine
        run, events = reading.load_for_replay(engine, self._target)
        definition = querying.definition_for(engine, run.workflow_type)
        name, signature, hint = query_of(query, definition)
        answer = querying.answer(engine, run, events, name, encode(engine, args, signature))
        return engine.converter.decode(answer.data, Any if self._plain_values else hint, argument="answer")

    aquery = twin(query)

    def cancel(self, reason: str = "") -> None:
        """Asks the workflow to cancel itself: its code sees a cancellation and may clean up first.

        Args:
            reason: Recorded with the run.

        Raises:
            InvalidArgument: The reason is no text.
            WorkflowClosed: It has ended already.
        """
        refuse_inside_workflow("handle.cancel")
        runs.cancel(self._engine, self._target, check_text(reason, "reason", REASON_LIMIT))

    acancel = twin(cancel)

    def terminate(self, reason: str = "") -> None:
        """Ends the workflow at once, without running its code. Prefer ``cancel`` where the code still works.

        Args:
            reason: Recorded with the run.

        Raises:
            InvalidArgument: The reason is no text.
            WorkflowClosed: It has ended already.
        """
        refuse_inside_workflow("handle.terminate")
        runs.terminate(self._engine, self._target, check_text(reason, "reason", REASON_LIMIT))

    aterminate = twin(terminate)

    # --- looking at it ------------------------------------------------------------------------------

    def describe(self) -> WorkflowDescription:
        """Returns everything about the run: open activities, timers and waits, and its next wake-up."""
        refuse_inside_workflow("handle.describe")
        return reading.describe(self._engine, self._target)

    adescribe = twin(describe)

    def history(self, after: int | None = None, limit: int = 1000, *, descending: bool = False) -> HistoryPage:
        """Returns some events of the run.

        Args:
            after: Number of the event to go on behind: the earlier page's ``next_cursor``.
            limit: At most so many events, from 1 to 1000.
            descending: The newest first.

        Raises:
            InvalidArgument: A number is out of range, or an argument is of another type; it is named.
        """
        refuse_inside_workflow("handle.history")
        cursor = None if after is None else check_int(after, "after", minimum=0, maximum=reading.LARGEST)
        count = check_int(limit, "limit", minimum=1, maximum=reading.PAGE_LIMIT)
        backwards = check_flag(descending, "descending")
        return reading.history_page(self._engine, self._target, cursor, count, descending=backwards)

    ahistory = twin(history)

    # ------------------------------------------------------------------------------------------------

    @property
    def _engine(self) -> Engine:
        return self._client._engine  # noqa: SLF001 - a handle is a part of its client

    @property
    def _target(self) -> Target:
        return Target(namespace=self._engine.settings.namespace, workflow_id=self.id, run_id=self.run_id)

    @property
    def _sleep(self) -> Callable[[float], None]:
        return self._client._sleep  # noqa: SLF001 - as above

    def _signal_request(
        self, engine: Engine, signal: Any, args: tuple[object, ...], signal_id: str, conn: Connection | None
    ) -> SignalRequest:
        def definition() -> WorkflowDefinition | None:
            if self._definition is not None:
                return self._definition
            run = reading.load_run(engine, self._target) if conn is None else find_run(conn, self._target)
            return self._client.definition_of(run.workflow_type)

        name, signature = signal_of(signal, definition)
        return SignalRequest(
            target=self._target, name=name, signal_id=signal_id, payload=encode(engine, args, signature)
        )

    def _result_hint(self, workflow_type: str) -> Any:
        if self._plain_values:
            return Any
        definition = self._definition or self._client.definition_of(workflow_type)
        return Any if definition is None else definition.result_hint
