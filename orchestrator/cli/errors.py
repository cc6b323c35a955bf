"""Errors of the command line, which know their exit code.

::

    CommandError
    ├── Refused       1   the operation failed or was refused
    ├── Unreachable   2   the database or the broker can't be reached
    └── Misused      64   the command was not given what it needs (EX_USAGE)
"""

from __future__ import annotations

from typing import Any

import click


class CommandError(click.ClickException):
    """Base of the errors a command ends with: printed on standard error, never with a traceback."""

    exit_code = 1

    def __init__(self, message: str, *, name: str = "", as_json: bool = False) -> None:
        super().__init__(message)
        self.name = name or type(self).__name__
        self.as_json = as_json

    def show(self, file: Any = None) -> None:
        """Prints the error: one line for people, or a JSON object."""
        from orchestrator.cli.text import printable, to_json

        if self.as_json:
            text = to_json({"error": {"type": self.name, "message": self.message, "exit_code": self.exit_code}})
        else:
            text = f"Error: {printable(self.message, keep_lines=True)}"
        click.echo(text, file=file, err=True)


class Refused(CommandError):
    """The operation failed or was refused."""

    exit_code = 1


class Unreachable(CommandError):
    """The database or the broker could not be reached."""

    exit_code = 2


class Misused(CommandError):
    """The command was not given what it needs."""

    exit_code = 64


def translate(error: Exception, *, as_json: bool) -> CommandError | None:
    """Returns the command's error for an error of the library, or None when it is a bug to be seen whole."""
    from orchestrator import errors

    kind: type[CommandError]
    if isinstance(error, errors.Unavailable):
        kind = Unreachable
    elif isinstance(error, errors.SchemaOutdated):
        kind = Refused
    elif isinstance(error, errors.InvalidArgument | errors.ConfigurationError):
        kind = Misused
    elif isinstance(error, errors.OrchestratorError | TimeoutError):
        kind = Refused
    else:
        return None
    return kind(str(error), name=type(error).__name__, as_json=as_json)
