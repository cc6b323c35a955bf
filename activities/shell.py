"""A ready activity for programs: runs one without a shell, with a time-out, and ends everything it started.

There is no command line to inject into: arguments are a list. Who needs a pipe writes ``["sh", "-c", "…"]`` and
sees what that means.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from datetime import timedelta
from tempfile import TemporaryFile
from typing import IO

from pydantic import BaseModel, ConfigDict

from orchestrator import ApplicationError, activity

MAX_OUTPUT_BYTES = 64 * 1024
HEARTBEAT_SECONDS = 1.0
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")


class ShellResult(BaseModel):
    """How a program ended. Of long output only the last 64 KiB are kept."""

    model_config = ConfigDict(frozen=True)

    returncode: int
    stdout: str
    stderr: str


@activity.defn(name="shell.run", start_to_close_timeout=timedelta(minutes=10))
def run(
    args: list[str],
    *,
    timeout: float = 60.0,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    stdin: str = "",
    check: bool = True,
) -> ShellResult:
    """Run a program and wait for it.

    It sends heartbeats, so a heartbeat time-out may be given and a cancelled activity ends its program. Of the
    worker's environment it sees PATH, HOME, TMPDIR, the language and the time zone only.

    Args:
        args: the program and its arguments, at least the program.
        timeout: seconds, at most the activity's start-to-close time-out; then the program and its children are killed.
        cwd: the directory to run in.
        env: further environment variables.
        stdin: text for its standard input.
        check: whether an exit code other than 0 is an error.

    Raises:
        ApplicationError: ``ShellFailed`` with details (exit code, end of stderr) and ``ShellTimeout``, worth
            another try; ``ShellNotFound`` and ``ShellBadArguments``, for good.
    """
    _check(args)
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ} | (env or {})
    with TemporaryFile() as feed, TemporaryFile() as out, TemporaryFile() as err:
        feed.write(stdin.encode())
        feed.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603 - to run a program is its purpose; no shell reads it
                args, stdin=feed, stdout=out, stderr=err, cwd=cwd, env=environment, start_new_session=True
            )
        except OSError as error:
            raise ApplicationError(
                f"{args[0]} cannot be run: {error}", type="ShellNotFound", non_retryable=True
            ) from error
        returncode = _wait(process, timeout, args[0])
        result = ShellResult(returncode=returncode, stdout=_tail(out), stderr=_tail(err))
    if check and returncode != 0:
        raise ApplicationError(
            f"{args[0]} ended with {returncode}", returncode, result.stderr[-2000:], type="ShellFailed"
        )
    return result


def _check(args: object) -> None:
    # A call by name is not type-checked, and a string would be taken for a list of letters.
    if isinstance(args, list) and args and all(isinstance(arg, str) and "\0" not in arg for arg in args):
        return
    message = "give the program and its arguments as a list of strings"
    raise ApplicationError(message, type="ShellBadArguments", non_retryable=True)


def _wait(process: subprocess.Popen[bytes], timeout: float, program: str) -> int:
    """Wait for the program; a cancelled activity is told so by its heartbeat, which then ends the wait."""
    deadline = time.monotonic() + timeout
    try:
        while (left := deadline - time.monotonic()) > 0:
            if activity.in_workflow():
                activity.heartbeat()
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(min(left, HEARTBEAT_SECONDS))
        raise ApplicationError(f"{program} did not end within {timeout} s and was killed", type="ShellTimeout")
    finally:
        # Its own session, so its children go with it, also those it left in the background.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MAX_OUTPUT_BYTES))
    return file.read().decode("utf-8", errors="replace")
