"""``workflow start`` and ``workflow result``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.inputs import read_inputs, read_json
from orchestrator.cli.session import command
from orchestrator.cli.waiting import check_seconds, timeout_option, wait_and_print, wait_when_blocked_option

if TYPE_CHECKING:
    from orchestrator.cli.session import Session

POLICIES = ("use_existing", "allow_duplicate", "allow_duplicate_failed_only", "reject_duplicate", "terminate_existing")


@command("start")
@click.argument("type_", metavar="TYPE")
@click.argument("args", nargs=-1)
@click.option("--id", "workflow_id", metavar="ID", help="Workflow id; starting it again finds the same run.")
@click.option("--input", "inputs", multiple=True, metavar="JSON", help="One argument as JSON; repeat it for more.")
@click.option("--queue", metavar="QUEUE", help="Celery queue of its decisions, instead of the type's own.")
@click.option("--id-reuse-policy", type=click.Choice(POLICIES), default="use_existing", show_default=True)
@click.option("--request-id", metavar="ID", help="A repeated start with this request id finds the same run.")
@click.option("--memo", metavar="JSON", help="A note kept with the run.")
@click.option("--wait", is_flag=True, help="Wait for the result and print it.")
@timeout_option
@wait_when_blocked_option
def start_command(
    session: Session,
    /,
    *,
    type_: str,
    args: tuple[str, ...],
    workflow_id: str | None,
    inputs: tuple[str, ...],
    memo: str | None,
    wait: bool,
    timeout: float | None,
    wait_when_blocked: bool,
    **options: Any,
) -> None:
    r"""Start a workflow of TYPE with ARGS, or find the run that has its id.

    An argument stays text where the parameter is a str, and is read as JSON elsewhere:

    \b
      celery -A shop workflow start fulfil 42 999 --id order-42
      celery -A shop workflow start fulfil --input '"42"' --input 999
    """
    check_seconds(timeout)
    durable = session.durable
    definition = durable.definition_of(type_)
    values = read_inputs(durable, args, inputs, definition.signature if definition else None)
    handle = durable.start(type_, *values, id=workflow_id, memo=read_json(memo, "--memo"), **options)
    if wait:
        wait_and_print(session, handle, timeout, wait_when_blocked)
    elif session.out.as_json:
        session.out.json({"id": handle.id, "run_id": handle.run_id, "type": type_, "created": handle.created})
    else:
        word = "Started" if handle.created else "Found"
        session.out.line(f"{word} {handle.id} (run {handle.run_id})")


@command("result")
@click.argument("workflow_id", metavar="ID")
@click.option("--run-id", metavar="ID", help="This run instead of the latest one.")
@timeout_option
@wait_when_blocked_option
def result_command(
    session: Session, /, *, workflow_id: str, run_id: str | None, timeout: float | None, wait_when_blocked: bool
) -> None:
    """Wait for the result of workflow ID and print it.

    Exit code 1 when it failed, was cancelled or terminated, is blocked, or is not done in time.
    """
    wait_and_print(session, session.durable.get_handle(workflow_id, run_id), timeout, wait_when_blocked)
