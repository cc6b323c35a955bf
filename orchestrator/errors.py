"""Every error this library raises, in one tree.

Each message tells the reader what to do next. The tree::

    OrchestratorError
    ├── ConfigurationError            a setting, or the way the app is put together, is wrong
    │   ├── SchemaOutdated            the database schema is behind (or ahead of) this version
    │   └── DuplicateDefinition       two workflows or two activities under one name
    ├── InvalidArgument               a public call was given something it refuses (also a ValueError)
    │   └── PayloadError              a value can't be stored, or stored bytes can't be read back
    ├── NotInWorkflow                 a call that only workflow code may make
    ├── InsideWorkflow                a call that workflow code may never make
    ├── NotInActivity                 a call that only a running activity may make
    ├── WorkflowNotFound              no such run, id or type
    ├── WorkflowAlreadyStarted        the id is taken and the policy forbids another run
    ├── WorkflowClosed                the run (or its whole lineage) has ended
    ├── SignalError
    │   ├── SignalConflict            the same signal id was sent with other content
    │   ├── UndeclaredSignal          the workflow type declares no such signal
    │   └── InboxFull                 the run has too many undelivered messages
    ├── QueryError                    a query could not be answered
    ├── Unavailable                   the database or the broker could not be reached in time
    ├── EnvironmentStuck              in a test: what is waited for will not happen
    ├── UnknownActivity               in a test: workflow code calls an activity that is not defined
    ├── WorkflowError                 how a run ended, raised by ``handle.result()``
    │   ├── WorkflowFailed / WorkflowCanceled / WorkflowTerminated / WorkflowTimedOut
    │   └── WorkflowBlocked           the run waits for its code to be fixed
    ├── ActivityError                 raised by awaiting an activity in workflow code
    ├── FailureCause                  what an ActivityError or WorkflowFailed carries as ``cause``
    │   └── ApplicationError / ActivityTimeout / WorkerLost / Cancelled
    └── ReplayError                   the run is blocked, never failed, by these
        ├── NondeterminismError
        ├── UnknownWorkflowType
        ├── WorkflowCodeError         an error in workflow code that a deploy can cure (NameError, TypeError, …)
        ├── MalformedCommand          a command the engine does not know, or one after a closing command
        ├── HistoryLimitReached       the run's history is longer than orchestrator_history_limit
        └── DecisionTimeout
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.model.failures import Failure

_LONGEST = timedelta(days=100 * 365)


class OrchestratorError(Exception):
    """Base of every error this library raises."""


class ConfigurationError(OrchestratorError):
    """A setting, or the way the application is put together, is wrong."""


class SchemaOutdated(ConfigurationError):
    """The database schema is not the one this version of the library needs."""


class DuplicateDefinition(ConfigurationError):
    """Two definitions share one name; the message names both places."""


class InvalidArgument(OrchestratorError, ValueError):
    """A public call was given a value it refuses; nothing was stored.

    Attributes:
        argument: Name of the argument, as the caller wrote it.
        reason: What is wrong with it and what is accepted.
    """

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(f"{argument}: {reason}")
        self.argument = argument
        self.reason = reason


class PayloadError(InvalidArgument):
    """A value can't be stored as a payload, or stored bytes can't be read back.

    ``argument`` is the path of the offending value, for example ``order.lines[3].price``.
    """


class NotInWorkflow(OrchestratorError, RuntimeError):
    """The call is only possible inside running workflow code."""


class InsideWorkflow(OrchestratorError, RuntimeError):
    """The call reaches outside the workflow and is refused in workflow code."""


class NotInActivity(OrchestratorError, RuntimeError):
    """The call is only possible inside a running activity."""


class WorkflowNotFound(OrchestratorError, LookupError):
    """No run, workflow id or workflow type of that name is known in this namespace."""


class WorkflowAlreadyStarted(OrchestratorError):
    """The workflow id is taken, and the given policy does not allow another run.

    Attributes:
        workflow_id: The id that is taken.
        run_id: The run that holds it.
        workflow_type: The type of that run.
    """

    def __init__(self, message: str, *, workflow_id: str, run_id: str, workflow_type: str) -> None:
        super().__init__(message)
        self.workflow_id = workflow_id
        self.run_id = run_id
        self.workflow_type = workflow_type


class WorkflowClosed(OrchestratorError):
    """The run has ended, so it takes no more messages; start a new run instead."""


class SignalError(OrchestratorError):
    """A signal was refused; nothing was stored."""


class SignalConflict(SignalError):
    """The signal id was used before with another name or payload.

    Attributes:
        run_id: The run that holds the first signal of this id.
    """

    def __init__(self, message: str, *, run_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class UndeclaredSignal(SignalError):
    """The workflow type declares signals, but none of this name."""


class InboxFull(SignalError):
    """The run holds ``orchestrator_inbox_limit`` undelivered messages; try again later."""


class QueryError(OrchestratorError):
    """A query could not be answered; the run is unharmed."""


class Unavailable(OrchestratorError):
    """The database or the broker could not be reached within the configured limit."""


class EnvironmentStuck(OrchestratorError):
    """A test waits for something that will not happen; the message tells what each open run waits for."""


class UnknownActivity(OrchestratorError, LookupError):
    """Workflow code under test calls an activity that is neither defined nor stubbed."""


class FailureCause(OrchestratorError):
    """Base of what can stand behind a failure: rebuilt from its stored form."""

    def __init__(self, message: str = "", *, failure: Failure | None = None) -> None:
        super().__init__(message)
        self.failure = failure


class ApplicationError(FailureCause):
    """An error of the application, raised by its code on purpose or by accident.

    Raise it from an activity to steer its retries.

    Args:
        message: Text for people.
        *details: JSON-able values that travel with the error.
        type: Name to match in ``RetryPolicy.non_retryable_error_types``; default the class name.
        non_retryable: True ends the retries at once.
        next_retry_delay: Replaces the policy's delay before the next attempt: a timedelta or a number of seconds, at
            most 100 years; below zero counts as zero, since the instant that was meant may have passed.
        failure: The stored form this error was rebuilt from (set by the library).

    Raises:
        InvalidArgument: An option is of the wrong type, or the delay is NaN or too long; it is named.
    """

    def __init__(
        self,
        message: str = "",
        *details: Any,
        type: str | None = None,  # noqa: A002 - the field's standard name (Temporal's SDK)
        non_retryable: bool = False,
        next_retry_delay: timedelta | float | None = None,
        failure: Failure | None = None,
    ) -> None:
        super().__init__(message, failure=failure)
        _check_is(type, str, "type", "a name")
        _check_is(non_retryable, bool, "non_retryable", "True or False")
        self.message = message
        self.details = details
        self.type = type or self.__class__.__name__
        self.non_retryable = non_retryable
        self.next_retry_delay = None if next_retry_delay is None else _retry_delay(next_retry_delay)


def _check_is(value: object, kind: type, argument: str, what: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise InvalidArgument(argument, f"give {what}, not {type(value).__name__}")


def _retry_delay(value: object) -> timedelta:
    # What the public calls take durations by stands above this module.
    if isinstance(value, bool) or not isinstance(value, (timedelta, int, float)):
        raise InvalidArgument(
            "next_retry_delay", f"give a timedelta or a number of seconds, not {type(value).__name__}"
        )
    try:
        delay = value if isinstance(value, timedelta) else timedelta(seconds=value)
    except (OverflowError, ValueError):
        raise InvalidArgument("next_retry_delay", "give a finite number of seconds, at most 100 years") from None
    if delay > _LONGEST:
        raise InvalidArgument("next_retry_delay", "a delay of at most 100 years is accepted")
    return max(delay, timedelta(0))


class ActivityTimeout(FailureCause):
    """A deadline of the activity passed.

    Attributes:
        timeout_type: ``schedule_to_start``, ``start_to_close``, ``schedule_to_close`` or ``heartbeat``.
    """

    def __init__(self, message: str = "", *, timeout_type: str = "", failure: Failure | None = None) -> None:
        super().__init__(message, failure=failure)
        self.timeout_type = timeout_type


class WorkerLost(FailureCause):
    """The activity's attempts were lost with their worker processes, too often in a row."""


class Cancelled(FailureCause):
    """The activity or workflow was cancelled."""


class ActivityError(OrchestratorError):
    """The one error that awaiting an activity raises.

    Attributes:
        activity: Name of the activity.
        number: Its number in the run.
        attempt: The last attempt, counted from 1.
        type: Type name of the cause (``CardDeclined``, ``ActivityTimeout``, …).
        message: The cause's message.
        details: JSON-able values given with the error, a tuple.
        cause: ApplicationError, ActivityTimeout, WorkerLost or Cancelled.
    """

    def __init__(
        self,
        message: str,
        *,
        activity: str,
        number: int,
        attempt: int,
        cause: FailureCause,
        failure: Failure,
    ) -> None:
        super().__init__(message)
        self.activity = activity
        self.number = number
        self.attempt = attempt
        self.cause = cause
        self.failure = failure
        self.type = failure.type
        self.message = failure.message
        self.details: tuple[Any, ...] = tuple(failure.details or ())
        self.__cause__ = cause

    def is_type(self, error: type[BaseException] | str) -> bool:
        """Tells whether the activity's error is of this class (or a subclass of it).

        Args:
            error: An exception class, or its bare or fully qualified name.
        """
        return self.failure.is_type(error)


class WorkflowError(OrchestratorError):
    """How a run ended, when it did not complete.

    Attributes:
        workflow_id: The run's workflow id.
        run_id: The run.
        cause: The failure behind it, rebuilt, with its own ``__cause__``; an ActivityError when an activity's error
            ended the run. None when there is none.
    """

    def __init__(
        self,
        message: str,
        *,
        workflow_id: str = "",
        run_id: str = "",
        cause: ActivityError | FailureCause | None = None,
    ) -> None:
        super().__init__(message)
        self.workflow_id = workflow_id
        self.run_id = run_id
        self.cause = cause
        self.__cause__ = cause


class WorkflowFailed(WorkflowError):
    """The run ended with an error of its code."""


class WorkflowCanceled(WorkflowError):
    """The run was cancelled and acknowledged it."""


class WorkflowTerminated(WorkflowError):
    """The run was ended from outside without running its code."""


class WorkflowTimedOut(WorkflowError):
    """The run's deadline passed."""


class WorkflowBlocked(WorkflowError):
    """The run can't go on until its code is fixed; it goes on by itself then."""


class ReplayError(OrchestratorError):
    """Workflow code and history don't fit; blocks the run until the code is fixed."""


class NondeterminismError(ReplayError):
    """Workflow code asked for something else than its history holds."""


class UnknownWorkflowType(ReplayError):
    """No worker code defines the run's workflow type."""


class WorkflowCodeError(ReplayError):
    """Workflow code raised an error that a deploy can cure; ``__cause__`` is that error."""


class MalformedCommand(ReplayError):
    """A decision held a command the engine does not know, or one after a closing command."""


class HistoryLimitReached(ReplayError):
    """The run's history would grow beyond ``orchestrator_history_limit`` events."""


class DecisionTimeout(ReplayError):
    """Workflow code did not yield within ``orchestrator_decision_timeout``."""
