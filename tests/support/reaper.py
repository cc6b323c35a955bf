"""Cleans up after a test run that could not do it itself.

A test process that is killed (`kill -9`, the out-of-memory killer, a CI time-out) runs no teardown,
and its database servers, brokers and workers would stay for ever. So the first process or folder a
test run makes is announced to a small watcher through a pipe:

    test run ──"group 4711", "folder /tmp/x", "forget 4711"──▶ watcher (own session, waits at the pipe)

The pipe ends when the test run is gone, however it went; what was announced and not forgotten is
killed or removed then.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

_lock = threading.Lock()
_watchers: dict[int, "subprocess.Popen[str]"] = {}  # by our own pid: a forked child starts its own


def announce_group(pid: int) -> None:
    """Have the process group led by `pid` killed when this process is gone."""
    _tell(f"group {pid}")


def announce_folder(path: Path) -> None:
    """Have the folder removed when this process is gone."""
    _tell(f"folder {path}")


def forget(what: int | Path) -> None:
    """Take back what was announced: the test cleaned up by itself."""
    _tell(f"forget {what}")


def _tell(line: str) -> None:
    with _lock:
        watcher = _watchers.get(os.getpid())
        if watcher is None:
            watcher = _watchers[os.getpid()] = _start_watcher()
        assert watcher.stdin is not None
        watcher.stdin.write(line + "\n")
        watcher.stdin.flush()


def _start_watcher() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).resolve())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in the terminal is for the test run, not for its watcher
        text=True,
    )


def _watch() -> None:
    announced: dict[str, str] = {}
    for line in sys.stdin:
        verb, _, what = line.rstrip("\n").partition(" ")
        if verb == "forget":
            announced.pop(what, None)
        else:
            announced[what] = verb
    for what, verb in announced.items():
        if verb == "group":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(int(what), signal.SIGKILL)
    for what, verb in announced.items():
        if verb == "folder":
            shutil.rmtree(what, ignore_errors=True)


if __name__ == "__main__":
    _watch()
