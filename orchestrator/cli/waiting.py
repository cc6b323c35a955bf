"""Waiting for a workflow at a prompt, and saying meanwhile where it stands."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.errors import Refused
from orchestrator.cli.output import age
from orchestrator.errors import ActivityError, OrchestratorError, WorkflowError
from orchestrator.model.names import check_duration

if TYPE_CHECKING:
    from orchestrator.cli.output import Progress
    from orchestrator.cli.session import Session
    from orchestrator.client import WorkflowDescription, WorkflowHandle

LOOK_EVERY = 0.5
"""Seconds between two looks at what a workflow is doing, while somebody watches."""

timeout_option = click.option(
    "--timeout", type=float, metavar="SECONDS", help="Stop waiting after this long; exit code 1."
)
wait_when_blocked_option = click.option(
    "--wait-when-blocked",
    is_flag=True,
    help="Wait on when the workflow is blocked until its code is fixed, instead of ending with exit code 1.",
)


def check_seconds(timeout: float | None) -> None:
    """Checks a time-out of the prompt, before anything is done.

    Raises:
        InvalidArgument: It is negative, NaN or longer than 100 years.
    """
    if timeout is not None:
        check_duration(timeout, "--timeout")


def wait_and_print(
    session: Session, handle: WorkflowHandle[Any, Any], timeout: float | None, wait_when_blocked: bool
) -> None:
    """Waits for a result and prints it.

    Raises:
        Refused: The workflow ended otherwise, is blocked, or is not done in time.
        InvalidArgument: The time-out is not a number of seconds.
    """
    check_seconds(timeout)
    try:
        value = _wait(session, handle, timeout, "wait" if wait_when_blocked else "raise")
    except (WorkflowError, TimeoutError) as error:
        raise Refused(_with_causes(error), name=type(error).__name__) from error
    if session.out.as_json:
        session.out.json({"id": handle.id, "run_id": handle.run_id, "result": value})
    else:
        from orchestrator.cli.text import to_json

        session.out.line(value if isinstance(value, str) else to_json(value))


def _wait(session: Session, handle: WorkflowHandle[Any, Any], timeout: float | None, on_blocked: Any) -> Any:
    with session.out.progress(f"Waiting for {handle.id}") as progress, ExitStack() as stack:
        if progress.is_seen:
            done = threading.Event()
            stack.callback(done.set)
            threading.Thread(target=_watch, args=(progress, handle, done), daemon=True).start()
        return handle.with_plain_values().result(timeout, on_blocked=on_blocked)


def _watch(progress: Progress, handle: WorkflowHandle[Any, Any], done: threading.Event) -> None:
    """Tells where the workflow stands, again and again, beside the wait itself."""
    started = time.monotonic()
    while not done.wait(LOOK_EVERY):
        # The wait itself reports what is wrong.
        with suppress(OrchestratorError):
            _tell(progress, handle.describe(), time.monotonic() - started)


def _tell(progress: Progress, run: WorkflowDescription, waited: float) -> None:
    doing = [f"{item.name} (attempt {item.attempt})" for item in run.activities[:3]]
    doing += [f"signal {wait.name!r}" for wait in run.waits[:3]]
    if not doing and run.next_wakeup_at is not None:
        doing = [f"a timer, due {age(run.next_wakeup_at)}"]
    state = run.status.value if run.attention == "none" else f"{run.status.value}, {run.attention.value}"
    progress.update(f"{run.id}: {state}, {waited:.0f} s – waits for {', '.join(doing) or 'a worker'}")


def _with_causes(error: BaseException) -> str:
    lines, seen = [str(error)], error.__cause__
    while seen is not None and len(lines) < 20:
        name = type(seen).__name__ if isinstance(seen, ActivityError) else getattr(seen, "type", type(seen).__name__)
        cause = f"{name}: {seen}"
        if not lines[-1].endswith(cause):  # an error's text often ends with its cause's
            lines.append(f"  caused by {cause}")
        seen = seen.__cause__
    return "\n".join(lines)
