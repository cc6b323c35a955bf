"""``workflow migrate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orchestrator.cli.session import command

if TYPE_CHECKING:
    from orchestrator.cli.session import Session


@command("migrate")
@click.option("--check", is_flag=True, help="Only look: exit code 1 when the schema is not the one that is needed.")
def migrate_command(session: Session, /, *, check: bool) -> None:
    """Bring the database schema up to this version, creating it when there is none.

    Safe to run from several places at once, and while workers of the version before are running.
    """
    from orchestrator.cli.checks.places import database_url
    from orchestrator.store import migrate

    database = session.durable.engine().db
    before = migrate.current(database)
    if check:
        migrate.check(database)
    else:
        migrate.upgrade(database)
    after = migrate.current(database)
    if session.out.as_json:
        session.out.json({"database": database_url(database), "before": before, "after": after, "needed": migrate.HEAD})
    elif before == after:
        session.out.line(f"The schema is at revision {after}; nothing to do.")
    else:
        session.out.line(f"The schema went from {before or 'nothing'} to revision {after}.")
