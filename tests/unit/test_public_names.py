"""The package's front door: what it names is what it gives, and nothing is loaded before it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import orchestrator
from orchestrator import installation


def test_every_public_name_can_be_imported():
    for name in orchestrator.__all__:
        if name != "testing":  # loads pytest's helpers; see its own tests
            assert getattr(orchestrator, name) is not None


def test_type_checkers_and_the_interpreter_see_the_same_names():
    tree = ast.parse(Path(orchestrator.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed | {"__version__"} == set(orchestrator.__all__)
    assert typed == set(orchestrator._HOME_OF)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        orchestrator.Nonsense  # noqa: B018


def test_importing_the_package_loads_neither_database_nor_celery():
    code = "import orchestrator, sys; print(sorted({'sqlalchemy', 'celery', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_another_package_of_the_name_on_the_path_is_told(tmp_path: Path):
    (tmp_path / "orchestrator").mkdir()
    (tmp_path / "orchestrator" / "__init__.py").touch()
    here = Path(orchestrator.__file__).parent
    with pytest.warns(UserWarning, match="rename or remove the other one"):
        installation.check(here, [str(here.parent), str(tmp_path)])


def test_another_distribution_in_our_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "orchestrator").mkdir()
    (tmp_path / "orchestrator-1.0.dist-info").mkdir()
    (tmp_path / "orchestrator-1.0.dist-info" / "METADATA").write_text("Name: orchestrator\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError, match="pip uninstall orchestrator"):
        installation.check(tmp_path / "orchestrator", [])
