"""Making a run's loop the one that runs in this thread, for a moment."""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType
from typing import Any

from orchestrator.runtime.loop import WorkflowLoop


class Activation:
    """A block in which the code of a run may run.

    The host's own running loop and task, if there are any, are put back afterwards.

    Args:
        loop: The run's loop.
    """

    __slots__ = ("_hooks", "_host", "_loop", "_task")

    def __init__(self, loop: WorkflowLoop) -> None:
        self._loop = loop
        self._host: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._hooks: Any = None

    def __enter__(self) -> None:
        self._host = host = asyncio._get_running_loop()
        if host is not None:
            self._task = asyncio.current_task(host)
            if self._task is not None:
                asyncio.tasks._leave_task(host, self._task)
        self._hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._loop.keep_generator, finalizer=None)
        self._loop.active = True
        asyncio._set_running_loop(self._loop)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # First of all: whatever interrupts the rest, nobody takes this thread for one inside the workflow.
        self._loop.active = False
        asyncio._set_running_loop(self._host)
        sys.set_asyncgen_hooks(*self._hooks)
        if self._host is not None and self._task is not None:
            asyncio.tasks._enter_task(self._host, self._task)
