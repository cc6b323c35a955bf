"""Programs are run without a shell, with a time-out, and leave nothing behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from activities import shell
from orchestrator import ApplicationError


def test_a_program_gets_its_arguments_as_they_are() -> None:
    result = shell.run([sys.executable, "-c", "import sys; print(sys.argv[1:])", "a b", "$HOME; rm", "*"])
    assert (result.returncode, result.stdout.strip()) == (0, "['a b', '$HOME; rm', '*']")


def test_standard_input_and_directory_are_given(tmp_path: Path) -> None:
    result = shell.run(["sh", "-c", "pwd; cat"], stdin="grüße", cwd=str(tmp_path))
    assert result.stdout == f"{tmp_path}\ngrüße"


def test_the_workers_secrets_are_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "s3cret")
    result = shell.run(["env"], env={"WANTED": "yes"})
    assert "SHOP_PASSWORD" not in result.stdout
    assert "WANTED=yes" in result.stdout


def test_another_exit_code_than_0_is_an_error_with_the_end_of_stderr() -> None:
    with pytest.raises(ApplicationError, match="ended with 3") as caught:
        shell.run(["sh", "-c", "echo why >&2; exit 3"])
    assert caught.value.details == (3, "why\n")
    assert shell.run(["sh", "-c", "exit 3"], check=False).returncode == 3


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(ApplicationError, match="did not end within") as caught:
        shell.run(["sh", "-c", f"sleep 60 & echo $! > {note}; wait"], timeout=0.5)
    assert (caught.value.type, caught.value.non_retryable) == ("ShellTimeout", False)
    child = int(note.read_text())
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and runs(child):
        time.sleep(0.01)
    assert not runs(child)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # An orphan that nobody has collected yet has ended all the same.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_of_long_output_the_end_is_kept() -> None:
    result = shell.run([sys.executable, "-c", "print('x' * 100_000 + 'end')"])
    assert len(result.stdout) == shell.MAX_OUTPUT_BYTES
    assert result.stdout.endswith("end\n")


@pytest.mark.parametrize("args", [[], "ls -l", ["a\0b"], [1]])
def test_arguments_are_a_list_of_strings(args: object) -> None:
    with pytest.raises(ApplicationError, match="as a list of strings") as caught:
        shell.run(args)  # type: ignore[arg-type]
    assert caught.value.non_retryable


def test_a_program_that_is_not_there_is_for_good() -> None:
    with pytest.raises(ApplicationError, match="cannot be run") as caught:
        shell.run(["no-such-program-here"])
    assert caught.value.non_retryable
