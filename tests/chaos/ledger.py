"""A service outside of everything that is stopped and killed: it remembers each effect, and each try, on the disk."""

from __future__ import annotations

import os
from pathlib import Path


class Ledger:
    """Effects of activities. What was written stays when its writer is killed.

    Args:
        folder: Where it is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def apply(self, effect: str, key: str) -> None:
        """Applies an effect under an idempotency key; a second time under another key is what must not happen."""
        path = self.folder / "effects" / effect
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            found = path.read_text()
            if found and found != key:
                self.note("twice", f"{effect}: {found} and {key}")
            return
        os.write(descriptor, key.encode())
        os.close(descriptor)

    def note_execution(self, line: str) -> None:
        """Notes that an activity's body began."""
        self._append("executions", line)

    def note(self, name: str, text: object = "") -> list[str]:
        """Appends a line to a page; returns all its lines."""
        self._append(name, str(text))
        return self.lines(name)

    def lines(self, name: str) -> list[str]:
        """Lines of a page."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def effects(self) -> list[str]:
        """Names of all effects that were applied."""
        return [path.name for path in (self.folder / "effects").iterdir()]

    def _append(self, name: str, line: str) -> None:
        # One write, so that lines of several processes never mix.
        descriptor = os.open(self.folder / name, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)
