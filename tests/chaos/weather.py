"""What happens to the machines while they work: workers are killed and servers restarted, again and again."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

from tests.support.celery_worker import CeleryWorker
from tests.support.own_server import OwnServer


class WorkerKiller:
    """Kills the worker that is up for the longest with SIGKILL, every `interval` seconds; each is started again.

    Now the whole worker goes at once, now its parent alone, now one of its children: what an orchestrator of
    containers, an operator and the kernel's out-of-memory killer do.

    Args:
        workers: The victims.
        interval: Seconds between two kills.
        spared: So many workers that are up are left alone: on a machine so busy that a worker takes longer to
            start than it would live, nothing else would ever be done.
    """

    def __init__(self, workers: Sequence[CeleryWorker], *, interval: float = 2.0, spared: int = 0) -> None:
        self._waiting = list(workers)
        """Those that are started, the longest first."""
        self._spared = spared
        self._interval = interval
        self._random = random.Random(1)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="worker-killer", daemon=True)
        self.kills = 0
        self.errors: list[BaseException] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            try:
                for worker in self._waiting:
                    if not worker.is_running():  # it gave up by itself: its supervisor starts it again
                        worker.start()
                up = [worker for worker in self._waiting if worker.is_ready()]
                if len(up) > self._spared:
                    self._kill(up[0])
            except BaseException as error:
                self.errors.append(error)
                return

    def _kill(self, worker: CeleryWorker) -> None:
        children = worker.children()
        way = self.kills % 3
        if way == 2 and children:
            _kill_child(self._random.choice(children))
        elif way == 1:
            worker.kill_parent()
        else:
            worker.kill()
        self.kills += 1
        if not worker.is_running():
            worker.start()
        self._waiting.remove(worker)
        self._waiting.append(worker)


def _kill_child(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Restart:
    """Restarts a server once, when so much is done; remembers how long it was away and when it was back."""

    def __init__(self, name: str, server: OwnServer, at: int, *, kill: bool = False) -> None:
        self.name = name
        self._server = server
        self._at = at
        self._kill = kill
        self.back_at: float | None = None
        self.away = 0.0
        self.recovered: float | None = None
        """Seconds from its return to the next effect."""
        self._done_then = 0

    def look(self, done: int, count: Callable[[], int]) -> None:
        """Restarts it if it is time; called again and again with how much is done."""
        if self.back_at is None and done >= self._at:
            began = time.monotonic()
            if self._kill:
                self._server.kill()
            else:
                self._server.stop()
            self._server.start()
            self.back_at = time.monotonic()
            self.away = self.back_at - began
            self._done_then = count()
        elif self.back_at is not None and self.recovered is None and done > self._done_then:
            self.recovered = time.monotonic() - self.back_at
