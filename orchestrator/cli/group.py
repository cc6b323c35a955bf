"""The group ``workflow`` and the exit codes of everything in it.

Commands are imported when they are run: ``celery --help`` and ``celery worker`` pay for a click group only.
Exit codes: 0 done, 1 failed or refused, 2 the system can't be reached, 64 wrong usage.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from orchestrator.cli.errors import Misused

COMMANDS = {
    "start": ("orchestrator.cli.start", "Start a workflow, or find the run that has its id."),
    "list": ("orchestrator.cli.show", "List runs, newest first."),
    "show": ("orchestrator.cli.show", "Show everything about one run."),
    "history": ("orchestrator.cli.show", "Show the events of one run."),
    "signal": ("orchestrator.cli.messages", "Send a signal to a workflow."),
    "query": ("orchestrator.cli.messages", "Ask a workflow for something, without changing it."),
    "cancel": ("orchestrator.cli.messages", "Ask a workflow to cancel itself; its code may clean up."),
    "terminate": ("orchestrator.cli.messages", "End a workflow at once, without running its code."),
    "result": ("orchestrator.cli.start", "Wait for the result of a workflow."),
    "migrate": ("orchestrator.cli.migrate", "Bring the database schema up to this version."),
    "doctor": ("orchestrator.cli.doctor", "Look for what would lose, double or hold up work."),
    "dev": ("orchestrator.cli.dev", "Run everything in one process, to try workflows out."),
}
"""Command → the module that holds it (as ``<name>_command``) and its line in the overview."""


class WorkflowGroup(click.Group):
    """Imports commands late and gives every error its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise _as_misuse(_with_suggestion(error, args)) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _as_misuse(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise _as_misuse(error) from None


def _as_misuse(error: click.UsageError) -> click.UsageError:
    error.exit_code = Misused.exit_code  # type: ignore[misc]  # click declares it on the class
    return error


def _with_suggestion(error: click.UsageError, args: list[str]) -> click.UsageError:
    import difflib

    near = difflib.get_close_matches(args[0], COMMANDS, n=1) if args else []
    if near:
        return click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx=error.ctx)
    return error


@click.group(cls=WorkflowGroup, short_help="Durable workflows: start, watch, signal and repair them.")
def workflow() -> None:
    """Durable workflows: start, watch, signal and repair them.

    Exit codes: 0 done, 1 failed or refused, 2 the system can't be reached, 64 wrong usage.
    """
