"""What a command works with: the app, its Orchestrator, and where its answer goes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from orchestrator.cli.errors import CommandError, Misused, translate
from orchestrator.cli.output import Output

if TYPE_CHECKING:
    from celery import Celery

    from orchestrator.app import Orchestrator

P = ParamSpec("P")

NO_APP = (
    "There is no Celery app here. Name yours before the subcommand: celery -A shop workflow {command} "
    "(shop is the module that holds the app)."
)
NO_ORCHESTRATOR = (
    "The app {app!r} has no workflows yet. Add one line next to it: durable = Orchestrator(app)  "
    "# from orchestrator import Orchestrator"
)


class Session:
    """One run of one command.

    Args:
        app: The Celery app of ``-A``.
        out: Where answers go.
        command: Name of the subcommand, for messages.
    """

    def __init__(self, app: Celery, out: Output, command: str) -> None:
        self.out = out
        self.command = command
        self._app = app

    @cached_property
    def app(self) -> Celery:
        """The app, with the modules it includes imported.

        Raises:
            Misused: ``-A`` was not given.
        """
        # What Celery falls back to without -A: an app of this name, without modules and a broker.
        if self._app.main == "default" and "orchestrator_database_url" not in self._app.conf:
            raise Misused(NO_APP.format(command=self.command), as_json=self.out.as_json)
        self._app.loader.import_default_modules()
        return self._app

    @cached_property
    def durable(self) -> Orchestrator:
        """The app's Orchestrator.

        Raises:
            Misused: The app has none.
        """
        from orchestrator.app import Orchestrator

        found = Orchestrator.of(self.app)
        if found is None:
            raise Misused(NO_ORCHESTRATOR.format(app=self.app.main), as_json=self.out.as_json)
        return found


def command(name: str) -> Callable[[Callable[Concatenate[Session, P], int | None]], click.Command]:
    """Makes a subcommand of a function: gives it ``--json``, a :class:`Session`, and exit codes for errors.

    The function's docstring is the command's help; what it returns is the exit code, None for 0.
    """

    def decorate(function: Callable[Concatenate[Session, P], int | None]) -> click.Command:
        @functools.wraps(function)
        def run(*args: Any, as_json: bool, **kwargs: Any) -> None:
            context = click.get_current_context()
            no_color = bool(getattr(context.obj, "no_color", False))
            session = Session(getattr(context.obj, "app", None) or _default_app(), Output(as_json, no_color), name)
            try:
                code = function(session, *args, **kwargs)
            except (click.ClickException, click.Abort, click.exceptions.Exit) as error:
                if isinstance(error, CommandError):
                    error.as_json = as_json
                raise
            except Exception as error:
                told = translate(error, as_json=as_json)
                if told is None:
                    raise
                raise told from error
            if code:
                context.exit(code)

        json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
        return click.command(name)(json_option(run))

    return decorate


def _default_app() -> Celery:
    from celery import current_app

    app: Celery = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001 - behind the proxy
    return app
