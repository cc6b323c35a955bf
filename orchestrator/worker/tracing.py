"""The claim in front of a task's body and the outcome behind it, around Celery's own tracer.

A message with our header is claimed first; refused, it is acknowledged and the body never runs. Claimed, the
stored arguments go through Celery's tracer as if the message had brought them, so its retry rules, hooks,
events, signals and time limits hold; what the tracer says is then recorded::

    returned                 the result completes the activity
    raised                   the failure is recorded: another attempt by the policy, else the activity's end
    Retry (self.retry())     the same attempt goes on when that message comes
    Reject(requeue=True)     the same: the broker brings the message back
    Reject, Ignore           the body says it has no outcome: the activity fails for good, saying so
    SystemExit               nothing here: the parent process knows whether that was the body or a shut-down
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from celery import Celery, Task, states
from celery.app.trace import trace_ok_t
from celery.exceptions import Ignore, Reject, Retry, WorkerShutdown, WorkerTerminate

from orchestrator.activity.context import RunningActivity, entered
from orchestrator.activity.definition import ActivityDefinition
from orchestrator.activity.legacy import definition_of
from orchestrator.engine import attempts
from orchestrator.engine.attempts import Claim, ClaimUnknown, Refusal
from orchestrator.engine.core import Engine
from orchestrator.errors import ApplicationError, OrchestratorError
from orchestrator.types import SECOND, Micros
from orchestrator.worker import execution, identity
from orchestrator.worker.binding import engine_of
from orchestrator.worker.header import ticket_of

logger = logging.getLogger(__name__)

Tracer = Callable[..., Any]
_OURS = "__orchestrator_tracer__"


def wrap_all(app: Celery) -> None:
    """Wraps the tracers of all the app's tasks; those that are wrapped already stay as they are."""
    for task in list(app.tasks.values()):
        tracer = task.__trace__
        if tracer is not None and not hasattr(tracer, _OURS):
            task.__trace__ = _wrapped(app, task, tracer)


def _wrapped(app: Celery, task: Task[..., Any], tracer: Tracer) -> Tracer:
    def trace(uuid: str, args: Any, kwargs: Any, request: Any = None) -> Any:
        ticket = ticket_of(request) if request else None
        if ticket is None:
            return tracer(uuid, args, kwargs, request)
        engine = engine_of(app)
        try:
            claim = attempts.claim(engine, ticket, identity.identity(), process_alive=identity.is_alive)
        except ClaimUnknown as doubt:
            execution.release_later(engine, doubt)
            claim = Refusal(reason=f"it is not known whether it is claimed ({doubt})")
        except OrchestratorError as error:
            # The message is given up; the row it stands for is sent again by the sweep.
            claim = Refusal(reason=f"it can't be claimed now ({error})")
        if isinstance(claim, Refusal):
            logger.info("Task %s[%s] is not run: %s.", task.name, uuid, claim.reason)
            return trace_ok_t(f"not run: {claim.reason}", None, 0.0, repr(f"not run: {claim.reason}"))
        attempt = _Attempt(engine, claim, definition_of(task), uuid)
        return attempt.trace(tracer, args, kwargs, request)

    setattr(trace, _OURS, tracer)
    return trace


class _Attempt:
    """One claimed attempt on its way through Celery's tracer."""

    def __init__(self, engine: Engine, claim: Claim, definition: ActivityDefinition, uuid: str) -> None:
        self.engine = engine
        self.claim = claim
        self.definition = definition
        self.uuid = uuid
        self.running: RunningActivity = execution.attempt_of(engine, claim, uuid)

    def trace(self, tracer: Tracer, args: Any, kwargs: Any, request: Any) -> Any:
        try:
            args, kwargs = self._arguments(args, kwargs, request)
        except Exception as error:  # noqa: BLE001 - recorded as the attempt's failure
            self._failed(error)
            return trace_ok_t(repr(error), None, 0.0, repr(error))
        request.update(args=args, kwargs=kwargs)
        try:
            with entered(self.running):
                outcome = tracer(self.uuid, args, kwargs, request)
        except (WorkerShutdown, WorkerTerminate):
            attempts.hand_back(self.engine, self.claim)
            raise
        except Reject as error:
            self._rejected(error)
            raise
        self._record(outcome)
        return outcome

    def _arguments(self, args: Any, kwargs: Any, request: Mapping[str, Any]) -> tuple[Any, Any]:
        if self.definition.legacy and request.get("retries") and (args or kwargs):
            # Celery's own retry carries arguments, which self.retry(args=...) may have changed. (One that the
            # sweep had to send again carries none.)
            return args, kwargs
        positional, named = execution.arguments(self.engine, self.claim, self.definition)
        return tuple(positional), named

    def _record(self, outcome: Any) -> None:
        result, info, _, _ = outcome
        if info is None:
            execution.record_result(self.engine, self.claim, self.running, self.definition, result)
        elif info.state == states.RETRY:
            execution.record_postponed(self.engine, self.claim, self.running, _delay(info.retval), retried=True)
        elif info.state == states.REJECTED:
            self._rejected(info.retval)
        elif info.state == states.IGNORED:
            self._without_outcome(info.retval)
        else:
            self._failed(info.retval)

    def _rejected(self, error: Reject) -> None:
        if getattr(error, "requeue", False):
            execution.record_postponed(self.engine, self.claim, self.running, 0, retried=False)
        else:
            self._without_outcome(error)

    def _without_outcome(self, error: Ignore | Reject) -> None:
        self._failed(
            ApplicationError(
                f"Task {self.claim.name!r} raised {type(error).__name__}, so it has no outcome that its workflow "
                "could wait for. Return a value or raise an error instead (Task.replace() raises Ignore too).",
                type=type(error).__name__,
                non_retryable=True,
            )
        )

    def _failed(self, error: BaseException) -> None:
        execution.record_failure(self.engine, self.claim, self.running, error)


def _delay(retry: Retry) -> Micros:
    """Returns how long Celery waits before it runs the body again."""
    when: Any = retry.when
    if isinstance(when, (int, float)):
        return max(0, int(when * SECOND))
    if isinstance(when, datetime):
        aware = when if when.tzinfo else when.replace(tzinfo=UTC)
        return max(0, int((aware - datetime.now(UTC)).total_seconds() * SECOND))
    return 0
