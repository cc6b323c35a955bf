"""What workflow code asks for, in the imperative; the runtime emits them, the engine applies them.

A command knows two things: the event that records it (``event()``), and everything the engine needs to
act on it. Replay compares ``event()`` with what history holds (:mod:`orchestrator.runtime.comparison`).
``line`` is the place in workflow code that issued the command, for error messages only.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from orchestrator.model import events
from orchestrator.model.options import ActivityOptions
from orchestrator.types import Micros


@dataclass(frozen=True, kw_only=True)
class Command:
    """Base of all commands."""

    line: str = ""

    @abstractmethod
    def event(self) -> events.EventBody:
        """Returns the event that records this command."""


@dataclass(frozen=True, kw_only=True)
class ScheduleActivity(Command):
    """Run an activity: ``options`` are fully merged; ``queue`` is what workflow code wrote, else None."""

    number: int
    name: str
    queue: str | None
    input: bytes
    input_digest: str
    options: ActivityOptions

    def event(self) -> events.EventBody:
        return events.ActivityScheduled(
            number=self.number, name=self.name, queue=self.queue, input_digest=self.input_digest
        )


@dataclass(frozen=True, kw_only=True)
class CancelActivity(Command):
    """Cancel the open activity ``target``."""

    number: int
    target: int

    def event(self) -> events.EventBody:
        return events.ActivityCancelRequested(number=self.number, target=self.target)


@dataclass(frozen=True, kw_only=True)
class StartTimer(Command):
    """Open a timer that is due at ``due_at``; ``duration_us`` is None for an absolute one."""

    number: int
    due_at: Micros
    duration_us: Micros | None

    def event(self) -> events.EventBody:
        return events.TimerStarted(number=self.number, due_at=self.due_at, duration_us=self.duration_us)


@dataclass(frozen=True, kw_only=True)
class CancelTimer(Command):
    """Cancel the open timer ``target``."""

    number: int
    target: int

    def event(self) -> events.EventBody:
        return events.TimerCancelled(number=self.number, target=self.target)


@dataclass(frozen=True, kw_only=True)
class OpenSignalWait(Command):
    """Record that workflow code waits for a signal."""

    number: int
    name: str
    timer: int | None

    def event(self) -> events.EventBody:
        return events.SignalWaitOpened(number=self.number, name=self.name, timer=self.timer)


@dataclass(frozen=True, kw_only=True)
class RecordSideEffect(Command):
    """Record the value of a side effect; with ``refused``, why it could not be stored."""

    number: int
    name: str
    value: bytes
    refused: bool | None = None

    def event(self) -> events.EventBody:
        return events.SideEffectRecorded(number=self.number, name=self.name, value=self.value, refused=self.refused)


@dataclass(frozen=True, kw_only=True)
class CloseRun(Command):
    """Base of the commands that end the run; nothing may follow one."""


@dataclass(frozen=True, kw_only=True)
class CompleteRun(CloseRun):
    """``run()`` returned."""

    result: bytes

    def event(self) -> events.EventBody:
        return events.RunCompleted(result=self.result)


@dataclass(frozen=True, kw_only=True)
class FailRun(CloseRun):
    """``run()`` raised."""

    failure: bytes

    def event(self) -> events.EventBody:
        return events.RunFailed(failure=self.failure)


@dataclass(frozen=True, kw_only=True)
class CancelRun(CloseRun):
    """The code acknowledged its cancellation."""

    reason: str

    def event(self) -> events.EventBody:
        return events.RunCanceled(reason=self.reason)
