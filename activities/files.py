"""Ready activities for files below one directory, ACTIVITIES_FILES_ROOT.

Paths are relative to it and cannot leave it, not by ``..``, not by links. Each of them can be run again: a write
replaces the file as a whole, a removal of what is gone is no error.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from orchestrator import ApplicationError, activity

ROOT_VARIABLE = "ACTIVITIES_FILES_ROOT"
MAX_TEXT_BYTES = 1024 * 1024
_PATIENCE = timedelta(minutes=5)


@activity.defn(name="files.read_text", start_to_close_timeout=_PATIENCE)
def read_text(path: str) -> str:
    """Return the text of a UTF-8 file of at most 1 MiB (what an activity returns stays in the workflow's history).

    Raises:
        ApplicationError: ``FilesRefused``, for good: outside the root, no UTF-8, too large; ``FilesUnavailable``,
            worth another try.
    """
    with _refusing(path) as file:
        if file.stat().st_size > MAX_TEXT_BYTES:
            raise _refused(f"{path} is larger than {MAX_TEXT_BYTES} bytes; pass its path on instead of its text")
        return file.read_bytes().decode("utf-8")


@activity.defn(name="files.write_text", start_to_close_timeout=_PATIENCE)
def write_text(path: str, text: str) -> int:
    """Write a UTF-8 file as a whole, so that nobody ever reads half of it, and return its size in bytes.

    Missing directories are made.

    Raises:
        ApplicationError: ``FilesRefused`` or ``FilesUnavailable``, as ``read_text``.
    """
    with _refusing(path) as file:
        data = text.encode("utf-8")
        with _replacing(file) as new:
            new.write_bytes(data)
        return len(data)


@activity.defn(name="files.copy", start_to_close_timeout=_PATIENCE)
def copy(source: str, target: str) -> int:
    """Copy a file; the target appears as a whole. Return its size in bytes.

    Raises:
        ApplicationError: ``FilesRefused`` or ``FilesUnavailable``, as ``read_text``.
    """
    with _refusing(source) as old, _refusing(target) as file:
        with _replacing(file) as new:
            shutil.copyfile(old, new)
        return file.stat().st_size


@activity.defn(name="files.remove", start_to_close_timeout=_PATIENCE)
def remove(path: str) -> bool:
    """Remove a file and return whether it was there.

    Raises:
        ApplicationError: ``FilesRefused`` or ``FilesUnavailable``, as ``read_text``.
    """
    with _refusing(path) as file:
        there = file.exists()
        file.unlink(missing_ok=True)
        return there


@activity.defn(name="files.find", start_to_close_timeout=_PATIENCE)
def find(pattern: str = "**/*") -> list[str]:
    """Return the sorted paths of the files that match a glob pattern.

    Raises:
        ApplicationError: ``FilesRefused`` or ``FilesUnavailable``, as ``read_text``.
    """
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise _refused(f"the pattern {pattern!r} leaves the root")
    with _refusing(".") as root:
        return sorted(file.relative_to(root).as_posix() for file in root.glob(pattern) if file.is_file())


@activity.defn(name="files.checksum", start_to_close_timeout=_PATIENCE)
def checksum(path: str) -> str:
    """Return the SHA-256 of a file in hexadecimal.

    Raises:
        ApplicationError: ``FilesRefused`` or ``FilesUnavailable``, as ``read_text``.
    """
    with _refusing(path) as file, file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


@contextmanager
def _refusing(path: str) -> Iterator[Path]:
    """Give the file's place below the root, and turn what goes wrong with it into errors that steer the retries."""
    root = os.environ.get(ROOT_VARIABLE)
    if not root:
        message = f"set {ROOT_VARIABLE} in the worker's environment to the directory that file activities may use"
        raise ApplicationError(message, type="FilesUnavailable")
    try:
        base = Path(root).resolve(strict=True)
        place = (base / path).resolve()
        if not place.is_relative_to(base):
            raise _refused(f"{path!r} is outside of the root")
        yield place
    except ValueError as error:
        raise _refused(f"{path!r}: {error}") from error
    except OSError as error:
        raise ApplicationError(f"{path!r}: {error.strerror or error}", type="FilesUnavailable") from error


@contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    """Give a new file beside ``file`` that takes its place when the block ends well, and is removed when not."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name[:100]}.")
    os.close(handle)
    new = Path(name)
    try:
        yield new
        new.chmod(0o644)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def _refused(message: str) -> ApplicationError:
    return ApplicationError(message, type="FilesRefused", non_retryable=True)
