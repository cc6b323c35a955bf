"""The commands of one activation, their numbers, and which of them leave no trace.

Every command takes the next number of its run, from 1, also one that is elided: a timer or an activity that
is started and cancelled in the same activation leaves neither event. Elision looks at one activation only,
never at a whole decision, so it does not depend on how events were batched.
"""

from __future__ import annotations

from orchestrator.errors import InsideWorkflow
from orchestrator.model.commands import CloseRun, Command
from orchestrator.runtime.loop import WorkflowLoop


class CommandLog:
    """Numbers commands and keeps those of the present activation, in the order they were issued.

    Args:
        loop: The run's loop, which knows whether workflow code may only read at the moment.
    """

    def __init__(self, loop: WorkflowLoop) -> None:
        self._loop = loop
        self._last = 0
        self._issued: dict[int, Command] = {}
        self._closing: CloseRun | None = None

    def next_number(self) -> int:
        """Returns the next command's number.

        Raises:
            InsideWorkflow: A query or a predicate runs, which may only read.
        """
        self.check_writable()
        self._last += 1
        return self._last

    def check_writable(self) -> None:
        """Refuses when a query or a predicate runs.

        Raises:
            InsideWorkflow: It does.
        """
        if self._loop.read_only:
            raise InsideWorkflow(
                f"{self._loop.read_only} only reads: it can't call activities, start timers, wait, record values or "
                "draw random ones. Do that in run() or in a signal handler."
            )

    def add(self, number: int, command: Command) -> None:
        """Takes a command into the present activation."""
        self._issued[number] = command

    def elide(self, number: int) -> bool:
        """Removes a command of the present activation; False when it was issued in an earlier one."""
        return self._issued.pop(number, None) is not None

    def close(self, command: CloseRun) -> None:
        """Ends the run: nothing follows this command."""
        self._closing = command

    def take(self) -> list[Command]:
        """Ends the activation and returns its commands."""
        commands = list(self._issued.values())
        if self._closing is not None:
            commands.append(self._closing)
            self._closing = None
        self._issued = {}
        return commands
