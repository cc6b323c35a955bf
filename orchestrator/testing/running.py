"""Running one attempt in a test: claimed, called and recorded as a worker does it, in the caller's thread."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from celery import Celery

from orchestrator.activity import loop
from orchestrator.activity.context import RunningActivity, entered
from orchestrator.activity.definition import ActivityDefinition, registry
from orchestrator.activity.legacy import definition_of
from orchestrator.engine import attempts
from orchestrator.engine.attempts import Claim, HeartbeatReply, Ticket, WorkerIdentity
from orchestrator.engine.core import Engine
from orchestrator.errors import InvalidArgument, UnknownActivity, WorkerLost
from orchestrator.model.names import check_name, task_id_for
from orchestrator.model.records import WorkerRecord
from orchestrator.store import workers
from orchestrator.testing.agenda import Agenda
from orchestrator.testing.calls import ActivityCall
from orchestrator.testing.stubs import Stub, TestFailure
from orchestrator.testing.targets import definition_behind
from orchestrator.transport.messages import RunActivity
from orchestrator.types import to_datetime
from orchestrator.worker import execution

WORKER_ID = "test"


class ActivityRunner:
    """Runs attempts: the stub of an activity where there is one, else its function.

    Args:
        engine: The engine.
        agenda: Where the ends of attempts are noted that take time.
        app: Whose plain Celery tasks may be called.
        settle: Runs what is ready; called at heartbeats, since workflows go on while an activity runs.
    """

    def __init__(self, engine: Engine, *, agenda: Agenda, app: Celery, settle: Callable[[], object]) -> None:
        self.stubs: dict[str, Stub] = {}
        self.calls: list[ActivityCall] = []
        self._engine = engine
        self._agenda = agenda
        self._app = app
        self._settle = settle
        self._worker = WorkerIdentity(worker_id=WORKER_ID, pid=os.getpid(), pid_started=0)
        engine.db.run(self._sign_on, what="sign on")

    def _sign_on(self, conn: Any) -> None:
        # Attempts of a worker that nobody knows would be taken for lost with it.
        now = self._engine.db.now(conn)
        record = WorkerRecord(
            worker_id=WORKER_ID,
            hostname="localhost",
            namespace=self._engine.settings.namespace,
            queues=(),
            pids=((self._worker.pid, self._worker.pid_started),),
            tasks=(),
            workflows=(),
            build_id=self._engine.settings.build_id,
            seen_clock=0,
            seen_at=now,
            started_at=now,
        )
        workers.upsert(conn, record)

    def resolve(self, activity: object, *, must_exist: bool = False) -> tuple[str, ActivityDefinition | None]:
        """Returns the name and, where it is known here, the definition of what a test means.

        Raises:
            InvalidArgument: It is no activity; or nothing has that name, and something must.
        """
        if isinstance(activity, str):
            name = check_name(activity, "activity")
            found = self.find(name)
            if must_exist and found is None and name not in self.stubs:
                raise InvalidArgument(
                    "activity", f"{name!r} is neither defined nor stubbed here; import its module, or stub it"
                )
            return name, found
        definition = definition_behind(activity)
        if definition is not None:
            return definition.name, definition
        what = type(activity).__name__
        raise InvalidArgument("activity", f"give an activity, a Celery task, or the name of one, not {what}")

    def find(self, name: str) -> ActivityDefinition | None:
        """Returns the activity of a name, or the plain Celery task of that name as one."""
        known = registry.get(name)
        if known is not None:
            return known
        task = self._app.tasks.get(name)
        return None if task is None else definition_of(task)

    def run(self, message: RunActivity) -> None:
        """Claims the attempt that a message offers and runs it; an end that is yet to come is noted for later.

        Raises:
            UnknownActivity: It is neither defined nor stubbed.
        """
        stub, definition = self.stubs.get(message.name), self.find(message.name)
        if stub is None and definition is None:
            raise UnknownActivity(
                f"Workflow {message.workflow_id!r} calls the activity {message.name!r}, which is not defined here. Import "
                f'its module, or stub it: env.stub("{message.name}", returns=...).'
            )
        ticket = Ticket(
            run_id=message.run_id,
            number=message.number,
            attempt=message.attempt,
            nonce=message.nonce,
            published_at=message.published_at,
        )
        claim = attempts.claim(self._engine, ticket, self._worker)
        if not isinstance(claim, Claim):
            return
        store = self._call(claim, definition or ActivityDefinition(name=message.name, function=None), stub)
        if stub is not None and stub.takes_us:
            self._agenda.add(claim.started_at + stub.takes_us, store)
        else:
            store()

    def _call(self, claim: Claim, definition: ActivityDefinition, stub: Stub | None) -> Callable[[], object]:
        """Calls the stub or the function; returns what stores the outcome."""
        engine = self._engine
        task_id = task_id_for(claim.workflow_id, claim.run_id, claim.name, claim.number, claim.attempt)
        attempt = RunningActivity(
            execution.attempt_of(engine, claim, task_id).info, lambda details: self._beat(claim, details), interval=0
        )
        act = self._function(definition) if stub is None else stub.act
        try:
            args, kwargs = execution.arguments(engine, claim, definition)
            self._note(claim, args, kwargs)
            with entered(attempt):
                result = act(*args, **kwargs)
                if inspect.iscoroutine(result):
                    result = _awaited(result)
        except TestFailure as failure:
            execution.record_failure(engine, claim, attempt, failure.error, non_retryable=True)
            raise failure.error from None
        except Exception as error:  # noqa: BLE001 - whatever the body raises is its outcome
            raised = error
            if stub is not None and isinstance(error, WorkerLost):
                return lambda: attempts.lose(engine, claim)
            return lambda: execution.record_failure(engine, claim, attempt, raised)
        return lambda: execution.record_result(engine, claim, attempt, definition, result)

    def _function(self, definition: ActivityDefinition) -> Callable[..., Any]:
        if not definition.legacy:
            return cast("Callable[..., Any]", definition.function)
        task = self._app.tasks[definition.name]
        # Celery's own eager run: a plain task's retries are its own and follow at once.
        return lambda *args, **kwargs: task.apply(args=args, kwargs=kwargs).get()

    def _beat(self, claim: Claim, details: bytes | None) -> HeartbeatReply:
        self._settle()
        return attempts.heartbeat(self._engine, claim, details)

    def _note(self, claim: Claim, args: list[Any], kwargs: dict[str, Any]) -> None:
        call = ActivityCall(
            activity=claim.name,
            args=tuple(args),
            kwargs=kwargs,
            attempt=claim.attempt,
            number=claim.number,
            workflow_id=claim.workflow_id,
            run_id=claim.run_id,
            idempotency_key=claim.idempotency_key,
            queue=claim.queue,
            at=to_datetime(claim.started_at),
        )
        self.calls.append(call)


def _awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    if not loop.runs_here():
        return loop.run(coroutine)
    # An async activity drives the environment by a blocking call, so the shared loop stands still meanwhile.
    with ThreadPoolExecutor(max_workers=1) as helper:
        return helper.submit(contextvars.copy_context().run, asyncio.run, coroutine).result()
