"""One daemon thread that talks to the broker, so that no caller ever waits longer than it wants to.

A publish with confirms can block for ever (a memory alarm of RabbitMQ, packets that vanish), and no option
of the client bounds it. So the work is done on a thread with a connection of its own; the caller waits until
its deadline and goes on. A thread that did not finish in time is abandoned with its connection: its socket is
shut down under it, which ends it, and the next caller gets a new thread.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from kombu import Connection

_T = TypeVar("_T")

IDLE_SECONDS = 60.0
"""A connection that was idle for so long is not trusted any more: brokers and NATs drop them silently."""

_open_connections: set[Connection] = set()
"""Keeps connections alive across a fork: py-amqp shuts the shared socket down when one is collected."""


class BrokerThread:
    """Runs work on a broker connection, one piece at a time.

    Args:
        connect: Opens a connection object (which connects at first use).
        monotonic: Clock, in seconds.
    """

    def __init__(self, connect: Callable[[], Connection], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._connect = connect
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._lane: _Lane | None = None
        _instances.add(self)

    def call(self, work: Callable[[Connection], _T], timeout: float) -> _T:
        """Runs ``work`` on the thread and returns its result.

        Args:
            work: Given the connection. After an error it is tried once more on a fresh one.
            timeout: Seconds until the caller stops waiting.

        Raises:
            TimeoutError: It did not finish in time (or the one before it did not); it may still happen.
            Exception: What ``work`` raised.
        """
        deadline = self._monotonic() + timeout
        lane = self._current_lane()
        result: Future[_T] = lane.submit(work, deadline)
        try:
            return result.result(timeout)
        except TimeoutError:
            if not result.done():
                self._abandon(lane)
            raise

    def close(self) -> None:
        """Ends the thread and its connection."""
        with self._lock:
            lane, self._lane = self._lane, None
        if lane is not None:
            lane.stop()

    def forget_after_fork(self) -> None:
        """Starts afresh in a forked child, where the thread does not exist."""
        self._lock = threading.Lock()
        self._lane = None

    def _current_lane(self) -> _Lane:
        with self._lock:
            if self._lane is not None and self._lane.is_stuck():
                self._lane.abandon()
                self._lane = None
            if self._lane is None:
                self._lane = _Lane(self._connect, self._monotonic)
            return self._lane

    def _abandon(self, lane: _Lane) -> None:
        with self._lock:
            if self._lane is lane:
                self._lane = None
        lane.abandon()


class _Lane:
    """One thread with one connection."""

    def __init__(self, connect: Callable[[], Connection], monotonic: Callable[[], float]) -> None:
        self._connect = connect
        self._monotonic = monotonic
        self._jobs: queue.SimpleQueue[tuple[Callable[[Connection], Any], float, Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._connection: Connection | None = None
        self._used_at = 0.0
        self._busy_until: float | None = None
        self._abandoned = False
        threading.Thread(target=self._run, name="orchestrator-publisher", daemon=True).start()

    def submit(self, work: Callable[[Connection], Any], deadline: float) -> Future[Any]:
        result: Future[Any] = Future()
        self._jobs.put((work, deadline, result))
        return result

    def is_stuck(self) -> bool:
        return self._busy_until is not None and self._monotonic() > self._busy_until

    def stop(self) -> None:
        self._jobs.put(None)

    def abandon(self) -> None:
        self._abandoned = True
        self._jobs.put(None)
        if (connection := self._connection) is not None:
            _shut_down(connection)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, deadline, result = job
            if self._abandoned or self._monotonic() >= deadline:
                result.set_exception(TimeoutError("the broker did not answer in time"))
                continue
            self._busy_until = deadline
            try:
                result.set_result(self._try_twice(work, deadline))
            except Exception as error:  # noqa: BLE001 - handed to the caller
                result.set_exception(error)
            finally:
                self._busy_until = None
                del job, work, result
        self._drop_connection()

    def _try_twice(self, work: Callable[[Connection], Any], deadline: float) -> Any:
        if self._connection is not None and self._monotonic() - self._used_at > IDLE_SECONDS:
            self._drop_connection()
        fresh = self._connection is None
        try:
            return self._once(work)
        except Exception:
            # The connection may have died while it was idle, and a queue that was deleted has to be
            # declared again, which only a connection without a memory of it does.
            self._drop_connection()
            if self._abandoned or (fresh and self._monotonic() >= deadline):
                raise
            return self._once(work)

    def _once(self, work: Callable[[Connection], Any]) -> Any:
        if self._connection is None:
            self._connection = self._connect()
            _open_connections.add(self._connection)
        answer = work(self._connection)
        self._used_at = self._monotonic()
        return answer

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with contextlib.suppress(Exception):
            connection.collect(socket_timeout=1)
        _open_connections.discard(connection)


def _shut_down(connection: Connection) -> None:
    """Shuts the socket down under a thread that waits for it."""
    with contextlib.suppress(Exception):
        sock = connection._connection.transport.sock  # type: ignore[attr-defined]  # noqa: SLF001 - AMQP only
        sock.shutdown(socket.SHUT_RDWR)


_instances: weakref.WeakSet[BrokerThread] = weakref.WeakSet()


def _forget_after_fork() -> None:
    for thread in list(_instances):
        thread.forget_after_fork()


os.register_at_fork(after_in_child=_forget_after_fork)
