"""Saying what open runs wait for, where a test waits for something that will not happen."""

from __future__ import annotations

from orchestrator.client.client import WorkflowClient
from orchestrator.client.views import WorkflowDescription

_SHOWN = 5


def what_runs_wait_for(client: WorkflowClient) -> str:
    """Returns a line for each open run, newest first."""
    found = [run for status in ("PENDING", "RUNNING") for run in client.list(status=status, limit=_SHOWN + 1).items]
    lines = [_line(client.get_handle(run.id, run.run_id).describe()) for run in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append("… and others")
    return "\n".join(f"- {line}" for line in lines) or "- no workflow is open"


def _line(run: WorkflowDescription) -> str:
    return f"{run.type} {run.id!r} " + (f"is blocked: {run.blocked_reason}" if run.blocked_reason else _waits(run))


def _waits(run: WorkflowDescription) -> str:
    parts = [f"the signal {wait.name!r}" for wait in run.waits]
    parts += [f"activity {item.name!r} (attempt {item.attempt}, {item.state})" for item in run.activities]
    parts += [f"a timer at {timer.due_at.isoformat()}" for timer in run.timers]
    if parts:
        return f"waits for {' and '.join(parts)}"
    known = ", ".join(repr(name) for name in run.declared_signals or ())
    by = f"one of its signals ({known})" if known else "a signal"
    return f"waits for a condition that only {by} or a cancellation can change"
