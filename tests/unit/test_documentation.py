"""What the documentation says is what there is."""

import re
from itertools import chain
from pathlib import Path

import pytest

from orchestrator.config import PREFIX, Settings
from tests.support.processes import ROOT

README = (ROOT / "README.md").read_text()
PAGES = sorted(chain(ROOT.glob("*.md"), ROOT.glob("docs/**/*.md")))


def test_the_readme_is_short_and_shows_code_at_once():
    lines = README.splitlines()
    assert len(lines) <= 130
    assert next(number for number, line in enumerate(lines, 1) if line.startswith("```python")) <= 30


@pytest.mark.parametrize(("number", "module"), list(enumerate(["celery", "orders", "usage"])))
def test_each_program_of_the_readme_is_a_file_that_is_checked_and_run(number: int, module: str):
    programs = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert programs[number] == (ROOT / f"tests/readme/shop/{module}.py").read_text()
    assert len(programs) == 3


def test_every_setting_has_a_heading_and_every_heading_a_setting():
    headings = re.findall(r"^## (.+)$", (ROOT / "docs/settings.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(PREFIX + name for name in Settings.model_fields)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path):
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
