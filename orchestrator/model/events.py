"""What a run's history consists of: past-tense facts, in one gap-free order.

A history alternates (protocol rule P3): an *external* event that reached the run, then the
*command* events its activation emitted, then the next external event. Replay applies the external
ones again, one at a time, and compares what the code asks for with the command events that follow.

An event's small facts are JSON attributes; everything of the user's (inputs, results, errors) is
encoded bytes, so that no codec is bypassed. The stored form carries a schema version; one that this
version does not know is refused, never guessed at.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from orchestrator.errors import ReplayError
from orchestrator.types import Attributes, Micros

SCHEMA_VERSION = 1
"""Version of the stored form of events, written with each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EventBody:
    """Base of all events. ``PAYLOAD`` names the field that is stored as encoded bytes."""

    PAYLOAD: ClassVar[str | None] = None
    IS_COMMAND: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One entry of a history: ``seq`` counts from 1; ``at`` is the decision's time."""

    seq: int
    at: Micros
    body: EventBody

    @property
    def kind(self) -> str:
        """The event's name as stored and shown, for example ``ActivityCompleted``."""
        return type(self.body).__name__


# --- external events: what reached the run ------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStarted(EventBody):
    """``run()`` was called; the input stands on the run itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalReceived(EventBody):
    """A signal was accepted; ``payload`` is the JSON array of its positional arguments."""

    PAYLOAD: ClassVar[str | None] = "payload"
    name: str
    signal_id: str
    payload: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class CancelRequested(EventBody):
    """Somebody asked the run to cancel itself."""

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TimerFired(EventBody):
    """The timer's due time passed."""

    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ActivityCompleted(EventBody):
    """The activity returned; ``result`` is its encoded value."""

    PAYLOAD: ClassVar[str | None] = "result"
    number: int
    attempt: int
    result: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class ActivityFailed(EventBody):
    """The activity ended for good with an error, a time-out, lost workers or a cancellation.

    ``failure`` is the encoded :class:`~orchestrator.model.failures.Failure`, whose kind tells which.
    """

    PAYLOAD: ClassVar[str | None] = "failure"
    number: int
    attempt: int
    failure: bytes


# --- command events: what workflow code asked for -----------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandEvent(EventBody):
    """Base of the events that record a command; ``number`` is unique in the run."""

    IS_COMMAND: ClassVar[bool] = True
    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ActivityScheduled(CommandEvent):
    """Workflow code called an activity. ``queue`` is None unless workflow code wrote it."""

    name: str
    queue: str | None = None
    input_digest: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActivityCancelRequested(CommandEvent):
    """Workflow code cancelled the open activity ``target``."""

    target: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TimerStarted(CommandEvent):
    """Workflow code opened a timer: by ``duration_us``, or by absolute ``due_at`` when that was asked for."""

    due_at: Micros
    duration_us: Micros | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TimerCancelled(CommandEvent):
    """Workflow code cancelled the open timer ``target``."""

    target: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalWaitOpened(CommandEvent):
    """Workflow code waits for a signal; ``timer`` is the number of its time-out's timer, if any."""

    name: str
    timer: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SideEffectRecorded(CommandEvent):
    """The value of a side effect, recorded once.

    With ``refused`` it could not be stored; ``value`` holds the place and the reason instead, for replay to raise again.
    """

    PAYLOAD: ClassVar[str | None] = "value"
    name: str
    value: bytes
    refused: bool | None = None


# --- closing events -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class RunClosed(EventBody):
    """Base of the events that end a history."""

    IS_COMMAND: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCompleted(RunClosed):
    """``run()`` returned; ``result`` is the encoded value."""

    PAYLOAD: ClassVar[str | None] = "result"
    result: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFailed(RunClosed):
    """``run()`` raised; ``failure`` is the encoded failure."""

    PAYLOAD: ClassVar[str | None] = "failure"
    failure: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCanceled(RunClosed):
    """The code acknowledged its cancellation (or never began)."""

    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTerminated(RunClosed):
    """The run was ended from outside; external, no code ran."""

    IS_COMMAND: ClassVar[bool] = False
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTimedOut(RunClosed):
    """The run's deadline passed; external, no code ran."""

    IS_COMMAND: ClassVar[bool] = False


EVENT_TYPES: dict[str, type[EventBody]] = {
    cls.__name__: cls
    for cls in (
        RunStarted,
        SignalReceived,
        CancelRequested,
        TimerFired,
        ActivityCompleted,
        ActivityFailed,
        ActivityScheduled,
        ActivityCancelRequested,
        TimerStarted,
        TimerCancelled,
        SignalWaitOpened,
        SideEffectRecorded,
        RunCompleted,
        RunFailed,
        RunCanceled,
        RunTerminated,
        RunTimedOut,
    )
}
"""All event classes by their stored kind."""


def to_stored(body: EventBody) -> tuple[str, Attributes, bytes | None]:
    """Returns an event's stored form: kind, JSON attributes and payload bytes."""
    attrs = {
        field.name: value
        for field in fields(body)
        if field.name != body.PAYLOAD and (value := getattr(body, field.name)) is not None
    }
    payload: bytes | None = getattr(body, body.PAYLOAD) if body.PAYLOAD else None
    return type(body).__name__, attrs, payload


def from_stored(version: int, kind: str, attrs: Attributes, payload: bytes | None) -> EventBody:
    """Rebuilds an event from its stored form.

    Raises:
        ReplayError: The schema version or the kind is not known to this version of the library.
    """
    cls = EVENT_TYPES.get(kind)
    if version != SCHEMA_VERSION or cls is None:
        raise ReplayError(
            f"History holds an event {kind!r} of schema version {version}, which this version of orchestrator "
            f"(schema version {SCHEMA_VERSION}) does not know. Run the worker with the version that wrote it, or newer."
        )
    values: dict[str, Any] = dict(attrs)
    if cls.PAYLOAD is not None:
        values[cls.PAYLOAD] = payload
    return cls(**values)
