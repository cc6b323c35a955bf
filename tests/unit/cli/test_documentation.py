"""docs/cli.md names every command, option and finding."""

import re
from pathlib import Path

import click
import pytest

from orchestrator.cli.group import COMMANDS, workflow
from tests.support.processes import ROOT

PAGE = (ROOT / "docs/cli.md").read_text()
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_command_has_a_heading_in_the_order_of_the_overview():
    assert [name for name in SECTIONS if name in COMMANDS] == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_described_with_its_command(name: str):
    command = workflow.get_command(click.Context(workflow), name)
    assert command is not None
    options = {option for param in command.params if isinstance(param, click.Option) for option in param.opts}
    options = {option for option in options if option.startswith("--")} - {"--json", "--help"}
    mentioned = set(re.findall(r"--[a-z][a-z-]+", SECTIONS[name])) - {"--json", "--help"}
    assert mentioned == options


def test_every_finding_of_doctor_is_described():
    source = "".join(path.read_text() for path in Path(ROOT / "orchestrator/cli").rglob("*.py"))
    codes = set(re.findall(r"(?:problem|warning|_unreachable)\(\s*\"([a-z-]+)\"", source))
    assert len(codes) > 15
    described = set(re.findall(r"`([a-z-]+)`(?=[^|]*\| (?:problem|warning|unreachable))", SECTIONS["doctor"]))
    assert described == codes
