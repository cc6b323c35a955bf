"""A daemon thread that does one thing again and again: every background service of the worker is one."""

from __future__ import annotations

import logging
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
        self._wake = threading.Event()
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
        self._wake.set()

    def stop(self, timeout: float = 5.0) -> None:
        """Ends it after the present call, and waits for that for at most ``timeout`` seconds."""
        self._stopping = True
        self._wake.set()
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
            self._wake.wait(self._interval)
            self._wake.clear()
