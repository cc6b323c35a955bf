"""A daemon thread that does one thing again and again: every background service of the worker is one."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Periodic:
    """Calls ``work`` every ``interval`` seconds, and sooner when woken. What it raises is logged once in a row.

    Args:
        name: Name of the thread, and of the work in the log.
        interval: Seconds between the end of one call and the beginning of the next.
        work: What to do.
    """

    def __init__(self, name: str, interval: float, work: Callable[[], None]) -> None:
        self._name = name
        self._interval = interval
        self._work = work
        # A queue, since waking must be safe in a signal handler: an Event's lock is not.
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stopping = False
        self._failing = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Has it do its work now."""
        self._wake.put(None)

    def stop(self, timeout: float = 5.0) -> None:
        """Ends it after the present call, and waits for that for at most ``timeout`` seconds."""
        self._stopping = True
        self._wake.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._work()
                self._failing = False
            except Exception:
                # Most often the database is away; one traceback tells it, not one a second.
                logger.log(
                    logging.DEBUG if self._failing else logging.ERROR,
                    "%s failed; it goes on.",
                    self._name,
                    exc_info=True,
                )
                self._failing = True
            self._pause()

    def _pause(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._wake.get(timeout=self._interval)
            while True:
                self._wake.get_nowait()
