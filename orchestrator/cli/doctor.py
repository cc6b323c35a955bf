"""``workflow doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.session import command
from orchestrator.errors import ConfigurationError

if TYPE_CHECKING:
    from orchestrator.cli.checks.findings import Finding
    from orchestrator.cli.session import Session

SIGNS = {"ok": "✓", "warning": "!", "problem": "✗", "unreachable": "✗"}


@command("doctor")
def doctor_command(session: Session, /) -> int:
    """Look for what would lose, double or hold up work, and say what to do about it.

    Exit code 0 when nothing has to be done, 1 when there is a problem, 2 when the database or the broker does not
    answer.
    """
    from orchestrator.cli.checks.findings import exit_code

    findings = _findings(session)
    code = exit_code(findings)
    if session.out.as_json:
        session.out.json({"ok": code == 0, "findings": findings})
        return code
    for finding in findings:
        style = {"ok": "green", "warning": "yellow"}.get(finding.level.value, "bold red")
        session.out.line(f"{SIGNS[finding.level.value]} {finding.message}", style)
        if finding.advice:
            session.out.line(f"  → {finding.advice}")
    return code


def _findings(session: Session) -> list[Finding]:
    from orchestrator.cli.checks.findings import problem
    from orchestrator.cli.checks.settings import check_settings
    from orchestrator.cli.checks.system import check_system

    durable = session.durable
    findings = check_settings(session.app)
    try:
        engine = durable.engine()
    except ConfigurationError as error:
        return [*findings, problem("configuration", str(error), "Correct the setting in the Celery configuration.")]
    return findings + check_system(session.app, engine)
