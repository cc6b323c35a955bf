"""Which run's code is running in this thread.

An activation makes the run's own loop the thread's running loop, and puts back what was there before: the
running loop *is* the context. So several runs can be advanced in several threads at once, tasks made by
workflow code see their run, and a host that runs asyncio itself (an async test, an async activity) gets its
own loop back untouched.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from orchestrator.errors import InsideWorkflow, NotInWorkflow
from orchestrator.runtime.loop import WorkflowLoop

if TYPE_CHECKING:
    from orchestrator.runtime.execution import Execution

_INSTEAD = {
    "start": "start the other workflow from an activity, or from outside",
    "signal": "signal the other run from an activity",
    "result": "await an activity that waits for it, or have the other run signal this one",
}


def maybe_current() -> Execution | None:
    """Returns the execution whose code runs in this thread, or None outside workflow code."""
    loop = asyncio._get_running_loop()
    if type(loop) is WorkflowLoop and loop.active:
        execution: Execution = loop.owner
        return execution
    return None


def current(call: str = "This call") -> Execution:
    """Returns the execution whose code runs in this thread.

    Args:
        call: What was called, for the message.

    Raises:
        NotInWorkflow: No workflow code runs here.
    """
    execution = maybe_current()
    if execution is None:
        raise NotInWorkflow(
            f"{call} is only possible inside running workflow code. From outside, use the client "
            "(durable.start, handle.signal, ...); in tests, orchestrator.testing.WorkflowEnvironment."
        )
    return execution


def refuse_inside_workflow(call: str) -> None:
    """Refuses a call that reaches outside, when workflow code makes it.

    Args:
        call: What was called, as the caller wrote it, for example ``durable.start``.

    Raises:
        InsideWorkflow: Workflow code runs in this thread; the message names the substitute.
    """
    if maybe_current() is None:
        return
    instead = _INSTEAD.get(
        call.rpartition(".")[2].removesuffix("()").removeprefix("a"), "do it in an activity and await the activity"
    )
    raise InsideWorkflow(
        f"{call} reaches outside the workflow, which replay would repeat; workflow code can't call it: {instead}."
    )
