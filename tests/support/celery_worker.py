"""A Celery worker as a process of its own, as in production: it can be killed."""

import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from celery import signals

from tests.support.processes import ROOT, ManagedProcess
from tests.support.waiting import wait_until

# What a worker does with other workers costs seconds at its start and is not what tests are about.
ALONE = ("--without-gossip", "--without-mingle", "--without-heartbeat")


class CeleryWorker(ManagedProcess):
    """`celery -A app worker` in the repository's root.

    Args:
        app_path: module of the app, as for `-A`.
        queues: queues to consume; none means the app's default.
        pool: prefork, threads or solo.
        concurrency: children or threads.
        args: further arguments of `celery worker`.
        env: further environment variables.
        log_path: file for its output.
    """

    def __init__(
        self,
        app_path: str,
        *,
        queues: Sequence[str] = (),
        pool: str = "prefork",
        concurrency: int = 2,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        log_path: Path,
    ) -> None:
        self.hostname = f"test-{secrets.token_hex(4)}@localhost"
        self._logs_before = 0
        command = [
            *(sys.executable, "-m", "celery", "-A", app_path, "worker"),
            *("--pool", pool, "--concurrency", str(concurrency), "--loglevel", "INFO"),
            *("--hostname", self.hostname),
            *(("--queues", ",".join(queues)) if queues else ()),
            *ALONE,
            *args,
        ]
        super().__init__(command, log_path=log_path, env=python_env(env))

    def start(self) -> None:
        self._logs_before = len(self.logs())
        super().start()

    def wait_ready(self, timeout: float = 40.0) -> None:
        """Wait until it consumes its queues."""
        wait_until(self._ready, timeout, interval=0.05, message=self._story)

    def restart(self, timeout: float = 40.0) -> None:
        """Start it again after it was killed or terminated, under the same name, and wait for it."""
        self.start()
        self.wait_ready(timeout)

    def is_ready(self) -> bool:
        """True from when it consumes its queues until it ends."""
        return self.is_running() and f"{self.hostname} ready." in self.logs()[self._logs_before :]

    def _ready(self) -> bool:
        if not self.is_running():
            raise AssertionError(self._story())
        return self.is_ready()

    def _story(self) -> str:
        return f"worker {self.hostname} to be ready; exit code {self.returncode}, log:\n{self.logs()[-6000:]}"


def python_env(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment for a Python child that finds this repository and prints at once."""
    return {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1", **(extra or {})}


@contextmanager
def logging_left_alone() -> Iterator[None]:
    """Keeps a worker in the test's own process from setting up the logging of all later tests."""

    def leave(**_: Any) -> None: ...

    signals.setup_logging.connect(leave, weak=False)
    try:
        yield
    finally:
        signals.setup_logging.disconnect(leave)
