"""``workflow list``, ``show`` and ``history``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.output import age, instant
from orchestrator.cli.session import command
from orchestrator.cli.text import one_line

if TYPE_CHECKING:
    from orchestrator.cli.session import Session
    from orchestrator.client import HistoryEvent, WorkflowDescription


@command("list")
@click.option("--status", metavar="STATUS", help="For example RUNNING or FAILED.")
@click.option("--type", "workflow_type", metavar="TYPE", help="Workflow type.")
@click.option("--attention", metavar="WHAT", help="none, blocked, paused or no_worker.")
@click.option("--id", "workflow_id", metavar="ID", help="Runs of this workflow id.")
@click.option("--limit", type=int, default=50, show_default=True, help="At most so many, up to 1000.")
@click.option("--cursor", metavar="CURSOR", help="Go on where an earlier list ended.")
def list_command(session: Session, /, **filters: Any) -> None:
    """List runs, newest first."""
    page = session.durable.list(**filters)
    if session.out.as_json:
        session.out.json(page)
        return
    columns = ("Workflow id", "Type", "Status", "Attention", "Created", "Closed", "Run id")
    rows = [
        (
            item.id,
            item.type,
            item.status.value,
            "" if item.attention == "none" else item.attention.value,
            instant(item.created_at),
            item.closed_at,
            item.run_id,
        )
        for item in page.items
    ]
    session.out.table(columns, rows)
    if not rows:
        session.out.line("No runs.", "dim")
    if page.next_cursor is not None:
        session.out.line(f"There are more: --cursor {page.next_cursor}", "dim")


@command("show")
@click.argument("workflow_id", metavar="ID")
@click.option("--run-id", metavar="ID", help="This run instead of the latest one.")
def show_command(session: Session, /, *, workflow_id: str, run_id: str | None) -> None:
    """Show workflow ID: where it stands, and what it waits for."""
    run = session.durable.get_handle(workflow_id, run_id).describe()
    if session.out.as_json:
        session.out.json(run)
        return
    session.out.facts(_facts(run))
    _show_waiting(session, run)


def _facts(run: WorkflowDescription) -> list[tuple[str, Any]]:
    return [
        ("Workflow id", run.id),
        ("Run id", run.run_id),
        ("Type", run.type),
        ("Status", run.status.value),
        ("Attention", None if run.attention == "none" else run.attention.value),
        ("Blocked by", run.blocked_reason),
        ("Failure", run.failure),
        ("Reason", run.close_reason),
        ("Queue", run.queue),
        ("Namespace", run.namespace),
        ("Input", one_line(run.input)),
        ("Memo", None if run.memo is None else one_line(run.memo)),
        ("Created", run.created_at),
        ("Started", run.started_at),
        ("Closed", run.closed_at),
        (
            "Next wake-up",
            None if run.next_wakeup_at is None else f"{instant(run.next_wakeup_at)} ({age(run.next_wakeup_at)})",
        ),
        ("Messages waiting", run.pending_messages or None),
        ("Events", run.history_length),
        ("Before it", run.previous_run_id),
        ("After it", run.successor_run_id),
        ("Build", run.build_id),
    ]


def _show_waiting(session: Session, run: WorkflowDescription) -> None:
    if run.activities:
        columns = ("#", "Activity", "State", "Attempt", "Queue", "Since", "Worker", "Last error")
        session.out.table(columns, [_activity_row(item) for item in run.activities], "Open activities")
    if run.timers:
        rows = [(timer.number, f"{instant(timer.due_at)} ({age(timer.due_at)})") for timer in run.timers]
        session.out.table(("#", "Due"), rows, "Open timers")
    if run.waits:
        waits = [(wait.number, wait.name, f"timer {wait.timer}" if wait.timer else "none") for wait in run.waits]
        session.out.table(("#", "Signal", "Time-out"), waits, "Waits for signals")


def _activity_row(item: Any) -> tuple[Any, ...]:
    since = item.started_at or item.next_attempt_at or item.scheduled_at
    return (
        item.number,
        item.name,
        item.state.value,
        item.attempt,
        item.queue,
        age(since),
        item.worker,
        item.last_error,
    )


@command("history")
@click.argument("workflow_id", metavar="ID")
@click.option("--run-id", metavar="ID", help="This run instead of the latest one.")
@click.option("--after", type=int, default=None, metavar="SEQ", help="Only what follows this event.")
@click.option("--limit", type=int, default=1000, show_default=True, help="At most so many, up to 1000.")
@click.option("--descending", is_flag=True, help="Newest first.")
def history_command(
    session: Session, /, *, workflow_id: str, run_id: str | None, after: int | None, limit: int, descending: bool
) -> None:
    """Show the events of workflow ID."""
    page = session.durable.get_handle(workflow_id, run_id).history(after, limit, descending=descending)
    if session.out.as_json:
        session.out.json(page)
        return
    rows = [(event.seq, instant(event.at), event.kind, _event_text(event)) for event in page.events]
    session.out.table(("#", "At", "Event", "What"), rows)
    if page.next_cursor is not None:
        session.out.line(f"There are more: --after {page.next_cursor}", "dim")


def _event_text(event: HistoryEvent) -> str:
    parts = [f"{name}={one_line(value, 60)}" for name, value in event.attributes.items() if value not in ("", None)]
    if event.payload is not None:
        parts.append(one_line(event.payload, 120))
    return " ".join(parts)
