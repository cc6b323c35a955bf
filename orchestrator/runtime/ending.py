"""What an exception that leaves workflow code means for the run (DESIGN §1).

===============================================================  =====================================
what leaves ``run()`` or a signal handler                         the run
===============================================================  =====================================
``asyncio.CancelledError`` after a cancel request                 closes as CANCELED
NameError, AttributeError, ImportError, TypeError,                is blocked until the code is fixed
RecursionError, NotImplementedError (also inside a group),
``sys.exit()``
a ReplayError of this library                                     is blocked
anything else: ActivityError, ApplicationError, TimeoutError,     closes as FAILED
ValueError, KeyError, an ExceptionGroup, …
===============================================================  =====================================

An ``ApplicationError`` or ``ActivityError`` fails the run even when its class is also a TypeError.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.errors import OrchestratorError, ReplayError, WorkflowCodeError

BLOCKING = (NameError, AttributeError, ImportError, TypeError, RecursionError, NotImplementedError)
"""Errors of workflow code that a deploy can cure."""


class Blocked(BaseException):
    """Unwinds workflow code once its run is blocked. No ``except Exception`` of an author stops it."""


PASSING = (GeneratorExit, KeyboardInterrupt, SystemExit, Blocked)
"""What is not the code's own doing: it is dropped, or the process is to end, or it is blocked already."""


def is_exit_call(error: BaseException) -> bool:
    """Tells ``sys.exit()`` from the subclasses by which a worker ends its own process."""
    return type(error) is SystemExit


def blocking_error(error: BaseException) -> ReplayError | None:
    """Returns the error that blocks the run, or None when ``error`` fails or cancels it."""
    for member in _members(error):
        if isinstance(member, ReplayError):
            return member
        if is_exit_call(member) or (isinstance(member, BLOCKING) and not isinstance(member, OrchestratorError)):
            blocked = WorkflowCodeError(
                f"Workflow code raised {type(member).__name__}: {member}{_place(member)}. Deploy code that does not; "
                "the run then goes on by itself."
            )
            blocked.__cause__ = member
            return blocked
    return None


def _members(error: BaseException) -> Iterator[BaseException]:
    """The error and, depth first, the members of a group; without recursion, which may be the error itself."""
    left = [error]
    while left:
        member = left.pop()
        yield member
        if isinstance(member, BaseExceptionGroup):
            left.extend(reversed(member.exceptions))


def _place(error: BaseException) -> str:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return ""
    return f" ({traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno})"
