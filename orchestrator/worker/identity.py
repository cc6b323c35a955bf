"""Who this worker is: an id per worker start, inherited by its children, and processes told apart by start time."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.engine.attempts import WorkerIdentity
from orchestrator.types import new_id

_worker_id = new_id()


def renew() -> str:
    """Starts a new identity, at the start of a worker; returns its id."""
    global _worker_id  # noqa: PLW0603 - one worker per process
    _worker_id = new_id()
    return _worker_id


def worker_id() -> str:
    """Returns the id of the worker this process belongs to."""
    return _worker_id


def identity() -> WorkerIdentity:
    """Returns who claims here: the worker, and this very process."""
    pid = os.getpid()
    return WorkerIdentity(worker_id=_worker_id, pid=pid, pid_started=process_started(pid) or 0)


def process_started(pid: int) -> int | None:
    """Returns a process's start time in clock ticks since boot, or None when it does not live.

    Where there is no ``/proc`` the time is 0: a reused pid can't be told apart there.
    """
    try:
        # The command's name stands in parentheses and may hold anything, parentheses and blanks included.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0 if not Path("/proc/self").exists() and _answers(pid) else None
    return None if fields[0] in ("Z", "X") else int(fields[19])


def is_alive(pid: int, started: int) -> bool:
    """Tells whether the process that had this pid and start time still lives."""
    return process_started(pid) == started


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
