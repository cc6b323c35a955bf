"""``workflow signal``, ``query``, ``cancel`` and ``terminate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.inputs import read_inputs
from orchestrator.cli.session import command
from orchestrator.cli.text import to_json

if TYPE_CHECKING:
    from orchestrator.cli.session import Session
    from orchestrator.client import WorkflowHandle
    from orchestrator.model.payloads import CallSignature

run_option = click.option("--run-id", metavar="ID", help="The lineage of this run instead of the latest one.")
input_option = click.option(
    "--input", "inputs", multiple=True, metavar="JSON", help="One argument as JSON; repeat it for more."
)
reason_option = click.option("--reason", default="", metavar="TEXT", help="Recorded with the run.")


@command("signal")
@click.argument("workflow_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("args", nargs=-1)
@input_option
@click.option("--signal-id", metavar="ID", help="A repeated signal with this id is stored once.")
@run_option
def signal_command(
    session: Session,
    /,
    *,
    workflow_id: str,
    name: str,
    args: tuple[str, ...],
    inputs: tuple[str, ...],
    signal_id: str | None,
    run_id: str | None,
) -> None:
    """Send signal NAME with ARGS to workflow ID."""
    handle = session.durable.get_handle(workflow_id, run_id)
    signature = _signature(session, handle, "signals", name)
    values = read_inputs(session.durable, args, inputs, signature)
    receipt = handle.signal(name, *values, signal_id=signal_id)
    if session.out.as_json:
        session.out.json(receipt)
    elif receipt.stored:
        session.out.line(f"Sent {name} to {workflow_id} (run {receipt.run_id}, signal id {receipt.signal_id})")
    else:
        session.out.line(f"{workflow_id} had signal {receipt.signal_id} already; nothing was stored")


@command("query")
@click.argument("workflow_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("args", nargs=-1)
@input_option
@run_option
def query_command(
    session: Session,
    /,
    *,
    workflow_id: str,
    name: str,
    args: tuple[str, ...],
    inputs: tuple[str, ...],
    run_id: str | None,
) -> None:
    """Ask workflow ID for the answer of its query NAME.

    The run is replayed right here with the code of the app; nothing is written.
    """
    handle = session.durable.get_handle(workflow_id, run_id).with_plain_values()
    signature = _signature(session, handle, "queries", name)
    answer = handle.query(name, *read_inputs(session.durable, args, inputs, signature))
    if session.out.as_json:
        session.out.json({"id": workflow_id, "query": name, "answer": answer})
    else:
        session.out.line(to_json(answer))


@command("cancel")
@click.argument("workflow_id", metavar="ID")
@reason_option
@run_option
def cancel_command(session: Session, /, *, workflow_id: str, reason: str, run_id: str | None) -> None:
    """Ask workflow ID to cancel itself; its code may clean up first."""
    handle = session.durable.get_handle(workflow_id, run_id)
    handle.cancel(reason)
    _told(session, workflow_id, "cancel", f"Asked {workflow_id} to cancel itself")


@command("terminate")
@click.argument("workflow_id", metavar="ID")
@reason_option
@run_option
def terminate_command(session: Session, /, *, workflow_id: str, reason: str, run_id: str | None) -> None:
    """End workflow ID at once, without running its code."""
    handle = session.durable.get_handle(workflow_id, run_id)
    handle.terminate(reason)
    _told(session, workflow_id, "terminate", f"Terminated {workflow_id}")


def _signature(session: Session, handle: WorkflowHandle[Any, Any], kind: str, name: str) -> CallSignature | None:
    definition = session.durable.definition_of(handle.describe().type)
    found = None if definition is None else getattr(definition, kind).get(name)
    return None if found is None else found.signature


def _told(session: Session, workflow_id: str, what: str, line: str) -> None:
    if session.out.as_json:
        session.out.json({"id": workflow_id, "accepted": what})
    else:
        session.out.line(line)
