"""Files below one directory, and none outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from activities import files
from orchestrator import ApplicationError


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.txt").write_text("secret")
    monkeypatch.setenv(files.ROOT_VARIABLE, str(root))
    return root


def test_what_is_written_is_read() -> None:
    assert files.write_text("a/b/Zoë.txt", "grüße\r\n") == 9
    assert files.read_text("a/b/Zoë.txt") == "grüße\r\n"


def test_a_write_replaces_the_file_and_leaves_nothing_else(root: Path) -> None:
    files.write_text("a.txt", "one")
    files.write_text("a.txt", "two")
    assert [file.name for file in root.iterdir()] == ["a.txt"]
    assert (root / "a.txt").read_text() == "two"


def test_a_copy_has_the_same_checksum() -> None:
    files.write_text("a.txt", "one")
    assert files.copy("a.txt", "deep/b.txt") == 3
    assert files.checksum("a.txt") == files.checksum("deep/b.txt")


def test_files_are_found_by_pattern_in_order() -> None:
    for name in ("b.csv", "a.csv", "deep/c.csv", "d.txt"):
        files.write_text(name, "")
    assert files.find("**/*.csv") == ["a.csv", "b.csv", "deep/c.csv"]
    assert files.find("*.txt") == ["d.txt"]


def test_removing_twice_is_no_error() -> None:
    files.write_text("a.txt", "")
    assert files.remove("a.txt") is True
    assert files.remove("a.txt") is False


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/passwd", "a/../../outside.txt", "link/outside.txt", "nul\0"])
def test_a_path_cannot_leave_the_root(path: str, root: Path) -> None:
    (root / "link").symlink_to(root.parent)
    for act in (files.read_text, files.remove, files.checksum, lambda path: files.write_text(path, "x")):
        with pytest.raises(ApplicationError) as caught:
            act(path)
        assert (caught.value.type, caught.value.non_retryable) == ("FilesRefused", True)
    assert (root.parent / "outside.txt").read_text() == "secret"


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../*"])
def test_a_pattern_cannot_leave_the_root(pattern: str) -> None:
    with pytest.raises(ApplicationError, match="leaves the root"):
        files.find(pattern)


def test_a_missing_file_is_worth_another_try() -> None:
    with pytest.raises(ApplicationError) as caught:
        files.read_text("not-yet.txt")
    assert (caught.value.type, caught.value.non_retryable) == ("FilesUnavailable", False)


def test_what_is_no_text_or_too_large_is_refused(root: Path) -> None:
    (root / "latin").write_bytes("Zoë".encode("latin-1"))
    (root / "big").write_bytes(b"x" * (files.MAX_TEXT_BYTES + 1))
    for name in ("latin", "big"):
        with pytest.raises(ApplicationError) as caught:
            files.read_text(name)
        assert caught.value.non_retryable


def test_without_a_root_nothing_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(files.ROOT_VARIABLE)
    with pytest.raises(ApplicationError, match="set ACTIVITIES_FILES_ROOT"):
        files.read_text("a.txt")
