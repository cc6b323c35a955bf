"""Child processes of tests: started in a group of their own, with a log, and never left behind."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from tests.support import reaper
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


class ManagedProcess:
    """A child process that can be stopped in every way a machine room knows.

    It leads its own process group, so a signal to the group reaches all it started. Both output
    streams go to the file `log_path`, which later starts append to.
    """

    def __init__(
        self,
        args: Sequence[str],
        *,
        log_path: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        user: str | None = None,
    ) -> None:
        self.args = list(args)
        self.log_path = log_path
        self.env = dict(env or {})
        self.cwd = cwd
        self.user = user
        self._child: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<ManagedProcess {' '.join(self.args)[:120]} pid={self._child and self._child.pid}>"

    @property
    def pid(self) -> int:
        """Process id of the parent; also the id of its group."""
        assert self._child is not None, f"{self.args[0]} was not started"
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal; None while it runs or before it was started."""
        return None if self._child is None else self._child.poll()

    def start(self) -> None:
        """Start it (again, once it has ended)."""
        assert not self.is_running(), f"{self} runs already"
        with self.log_path.open("ab") as log:
            self._child = subprocess.Popen(
                self.args,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.env},
                cwd=self.cwd,
                start_new_session=True,
                user=self.user,
                group=self.user,
                extra_groups=None if self.user is None else [],
            )
        reaper.announce_group(self._child.pid)

    def is_running(self) -> bool:
        """True while the parent process lives (its children are not asked)."""
        return self._child is not None and self._child.poll() is None

    def logs(self) -> str:
        """Everything it has printed so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def children(self) -> list[int]:
        """Process ids of all its living descendants."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return [child.pid for child in psutil.Process(self.pid).children(recursive=True)]
        return []

    def signal(self, number: int) -> None:
        """Send a signal to the parent process alone."""
        os.kill(self.pid, number)

    def wait(self, timeout: float = 30.0) -> int:
        """Wait until the parent has ended and return its exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs after `timeout` seconds.
        """
        assert self._child is not None, f"{self.args[0]} was not started"
        return self._child.wait(timeout)

    def terminate(self, timeout: float = 30.0) -> int:
        """Ask the parent to stop (SIGTERM), wait for it, and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def kill_parent(self) -> None:
        """SIGKILL the parent only; what its children do about it is what the test wants to see."""
        self.signal(signal.SIGKILL)
        self.wait()

    def kill(self) -> None:
        """SIGKILL the parent and all its descendants: the machine is gone."""
        victims = [] if self.returncode is not None else self.children()
        self._signal_group(signal.SIGKILL)
        for pid in victims:  # those that left the group, as PostgreSQL's back ends do
            _kill_quietly(pid, signal.SIGKILL)
        self.wait()
        wait_until(lambda: not any(map(is_alive, victims)), message=f"the children of {self} are gone")

    def freeze(self) -> None:
        """SIGSTOP the parent and all its descendants: nothing moves, connections stay open."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after `freeze`."""
        self._signal_all(signal.SIGCONT)

    def close(self) -> None:
        """Leave nothing behind, whatever state it is in. May be called twice."""
        if self._child is None:
            return
        self.kill()
        reaper.forget(self._child.pid)

    def _signal_all(self, number: int) -> None:
        children = self.children()
        self._signal_group(number)
        for pid in children:
            _kill_quietly(pid, number)

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


def _kill_quietly(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def is_alive(pid: int) -> bool:
    """True while the process can do anything: a zombie that nobody waits for can't."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False
