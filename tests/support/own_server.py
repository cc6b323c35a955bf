"""The one contract of every server that tests start for themselves."""

import contextlib
import os
import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from tests.support import reaper
from tests.support.ports import free_port
from tests.support.processes import ManagedProcess
from tests.support.waiting import wait_until


class OwnServer(ABC):
    """A server on a port and in a folder of its own, for tests that stop, kill or freeze it.

    Port and data stay the same from one start to the next. `close` removes everything.
    """

    name: str
    start_timeout = 30.0
    stop_signal: int = signal.SIGTERM
    user: str | None = None

    def __init__(self) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"orchestrator-{self.name}-"))
        reaper.announce_folder(self.folder)
        self.process = ManagedProcess([], log_path=self.folder / "server.log", cwd=self.folder, user=self.user)
        self._prepared = False

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients find it."""

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """The command line that runs the server in the foreground."""

    @abstractmethod
    def _answers(self) -> bool:
        """True once a client is served."""

    def _prepare(self) -> None:  # noqa: B027 - nothing to make is a good answer
        """Make what the first start needs: a data folder, for example."""

    def start(self) -> None:
        """Start it and wait until it serves clients."""
        if not self._prepared:
            self._prepare()
            self._prepared = True
        self.process.args = list(self._command())
        self.process.start()
        wait_until(self._answers_or_ended, self.start_timeout, interval=0.05, message=self._story)

    def stop(self, timeout: float = 30.0) -> None:
        """Shut it down in order: clients are disconnected, data is kept."""
        self.process.signal(self.stop_signal)
        self.process.wait(timeout)

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        self.process.kill()

    def restart(self) -> None:
        """`stop` and `start`."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Stop serving without closing a connection."""
        self.process.freeze()

    def resume(self) -> None:
        """Go on after `freeze`."""
        self.process.resume()

    def is_running(self) -> bool:
        """True while its process lives."""
        return self.process.is_running()

    def logs(self) -> str:
        """What it has printed."""
        return self.process.logs()

    def close(self) -> None:
        """End it at once and remove its folder. May be called twice."""
        self.process.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        reaper.forget(self.folder)

    def _answers_or_ended(self) -> bool:
        if not self.process.is_running():
            raise AssertionError(self._story())
        with contextlib.suppress(OSError):
            return self._answers()
        return False

    def _story(self) -> str:
        return f"{self.name} on port {self.port} to serve clients; exit code {self.process.returncode}, log:\n{self.logs()[-4000:]}"


def as_root() -> bool:
    """True when the test run has the rights to start servers as their own user."""
    return os.geteuid() == 0
