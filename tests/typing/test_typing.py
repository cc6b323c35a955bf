"""The library as its users' type checkers see it: right uses pass, and every line marked as wrong is refused.

The marks are `# type: ignore` comments: both checkers are told to complain about one that is not needed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT

CASES = sorted(str(path.relative_to(ROOT)) for path in Path(__file__).parent.glob("cases_*.py"))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_mypy_accepts_right_uses_and_refuses_wrong_ones(tmp_path: Path):
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", f"--cache-dir={tmp_path}", *CASES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_accepts_right_uses_and_refuses_wrong_ones():
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "tests/typing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "FORCE_COLOR": "0"})
    report = json.loads(done.stdout[done.stdout.index("{") :])
    found = [
        f"{item['file']}:{item['range']['start']['line'] + 1}: {item['message']}"
        for item in report["generalDiagnostics"]
    ]
    assert done.returncode == 0, "\n".join(found)
