"""The code of docs/from-canvas.md is the code that the other tests here run."""

import ast
import re
from pathlib import Path

import pytest

from tests.acceptance.from_canvas.conftest import HERE, PROJECT, ROWS
from tests.support.processes import ROOT

PAGE = (ROOT / "docs/from-canvas.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
FILES = {
    "bookshop/celery.py": PROJECT,
    "bookshop/tasks.py": PROJECT,
    "bookshop/workflows.py": PROJECT,
    "bookshop/orders.py": PROJECT,
    "bookshop/workflows.py, second day": HERE / "second_day",
    "bookshop/tasks.py, thirtieth day": HERE / "thirtieth_day",
    "bookshop/workflows.py, thirtieth day": HERE / "thirtieth_day",
}
HEADINGS = {
    "Group": "group",
    "Chord": "chord",
    "link_error": "link_error",
    "Retry with a countdown": "retry",
    "Countdown of days": "countdown",
    "Task.replace": "replace",
    "`.get()` inside a task": "get",
    "Revoke": "revoke",
    "Beat entry": "beat",
}


@pytest.mark.parametrize("title", FILES)
def test_a_file_on_the_page_is_the_file_that_is_run(title: str):
    (code,) = [block.partition("\n")[2] for block in BLOCKS if block.partition("\n")[0] == f"# {title}"]
    assert code == (FILES[title] / title.partition(",")[0]).read_text()


def test_every_file_of_a_later_day_is_on_the_page():
    later = {path for day in ("second_day", "thirtieth_day") for path in (HERE / day).rglob("*.py")}
    assert later == {folder / title.partition(",")[0] for title, folder in FILES.items() if folder != PROJECT}


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_row_shows_canvas_and_workflow_as_they_are_run(heading: str):
    section = PAGE.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
    canvas, workflow = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert canvas.startswith("# canvas\n")
    assert workflow.startswith("# workflow\n")
    shown = "\n\n\n".join(block.partition("\n")[2].strip() for block in (canvas, workflow))
    assert shown == code_of(PROJECT / f"bookshop/rows/{HEADINGS[heading]}.py")


def test_every_row_is_on_the_page_and_in_its_table():
    assert sorted(HEADINGS.values()) == ROWS
    anchors = set(re.findall(r"^\| \[.*?\]\(#(.*?)\)", PAGE, re.MULTILINE))
    assert anchors == {anchor_of(heading) for heading in HEADINGS} | {anchor_of("The first day: wrap one chain")}


def test_the_imports_of_the_rows_are_on_the_page():
    (shown,) = [block for block in BLOCKS if block.startswith("import asyncio\n")]
    used = set().union(*(imports_of((PROJECT / f"bookshop/rows/{row}.py").read_text()) for row in ROWS))
    own = {name for name in used if name.startswith("bookshop.rows.")}
    assert imports_of(shown) == used - own


def test_all_python_of_the_page_is_checked():
    assert len(BLOCKS) == len(FILES) + 1 + 2 * len(HEADINGS)


def code_of(path: Path) -> str:
    """The code of a module below its imports."""
    source = path.read_text()
    first = next(node for node in ast.parse(source).body if not isinstance(node, ast.Import | ast.ImportFrom))
    decorators = getattr(first, "decorator_list", [])
    line = min([first.lineno, *(decorator.lineno for decorator in decorators)])
    return "\n".join(source.splitlines()[line - 1 :]).strip()


def imports_of(source: str) -> set[str]:
    """What a module imports, as dotted names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def anchor_of(heading: str) -> str:
    """The anchor that GitHub and Sphinx give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
