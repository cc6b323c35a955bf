"""A server process as the driver holds it: started, killed without warning, seen gone, started again."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

from activities.demo.errors import ServerFailed
from activities.demo.settings import ServerSettings


class ServerProcess:
    """One server process at a time, started anew under the same settings."""

    def __init__(self, settings: ServerSettings, log: Path) -> None:
        self._settings = settings
        self._log = log
        self._process: subprocess.Popen[str] | None = None
        self._ready = False

    @property
    def pid(self) -> int:
        """The process id of the one that was started last."""
        assert self._process is not None, "start() first"
        return self._process.pid

    def start(self) -> None:
        """Start the process without waiting for it to take work."""
        self._ready = False
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "activities.demo.server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Its own session: Ctrl-C reaches the driver alone, which then ends its servers in order.
                start_new_session=True,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(self._settings.model_dump_json() + "\n")
        self._process.stdin.flush()

    def is_ready(self) -> bool:
        """Return whether the process has said that it takes work, without waiting for it.

        Raises:
            ServerFailed: when it has ended instead.
        """
        self.check()
        assert self._process is not None, "start() first"
        assert self._process.stdout is not None
        if not self._ready and select.select([self._process.stdout], [], [], 0)[0]:
            self._ready = self._process.stdout.readline() == "ready\n"
        return self._ready

    def check(self) -> None:
        """Raise ServerFailed when the process has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise ServerFailed(
                f"the {self._settings.kind} server ended with {self._process.returncode}:\n{self._tail()}"
            )

    def kill(self) -> None:
        """End the process at once with SIGKILL, as a machine that loses power does. Harmless when it has ended."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    @property
    def gone(self) -> bool:
        """Whether the system knows no process of that id any more."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def _tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
