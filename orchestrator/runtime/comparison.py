"""Whether workflow code asks again for what its history holds (protocol rule P5).

Compared are kind, number and name; a timer's duration, or its absolute due time; the other end of a
cancellation; a queue that workflow code wrote; the digest of an activity's input. Results, side-effect values
and due times of relative timers are not: there the recorded value wins. Commands missing, commands too many
and a return before the end of history are differences too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.errors import NondeterminismError
from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from orchestrator.model.events import Event, EventBody

_FIELDS: dict[type[EventBody], tuple[str, ...]] = {
    ev.ActivityScheduled: ("number", "name", "queue", "input_digest"),
    ev.ActivityCancelRequested: ("number", "target"),
    ev.TimerCancelled: ("number", "target"),
    ev.SignalWaitOpened: ("number", "name", "timer"),
    ev.SideEffectRecorded: ("number", "name"),
    ev.RunCompleted: (),
    ev.RunFailed: (),
    ev.RunCanceled: (),
}
_TEXTS = {
    "number": "number",
    "name": "name",
    "queue": "queue",
    "input_digest": "input",
    "target": "target",
    "timer": "time-out timer",
    "duration_us": "duration in µs",
    "due_at": "due time in µs",
}


def is_left_over(events: Sequence[Event]) -> bool:
    """Tells whether these last events are messages that no code saw, and the end of the run.

    Messages that were accepted and not applied when the code ended are recorded before the closing event (P6), so
    that event does not follow its cause.
    """
    if not events or not isinstance(events[-1].body, ev.RunClosed) or not events[-1].body.IS_COMMAND:
        return False
    return all(isinstance(event.body, ev.SignalReceived | ev.CancelRequested) for event in events[:-1])


def compare(cause: Event, recorded: Sequence[Event], commands: Sequence[cmd.Command]) -> None:
    """Compares what one activation asked for with the events that recorded it.

    Args:
        cause: The external event that was applied.
        recorded: The command events that follow it in history.
        commands: What the code asked for now, elided pairs left out.

    Raises:
        NondeterminismError: They differ.
    """
    for event, command in zip(recorded, commands, strict=False):
        asked = command.event()
        difference = _difference(event.body, asked)
        if difference:
            raise NondeterminismError(
                _text(
                    f"event {event.seq} of its history is {describe(event.body)}", describe(asked), command, difference
                )
            )
    if len(recorded) > len(commands):
        missing = recorded[len(commands)]
        last = commands[-1] if commands else None
        asked_text = "the run to end there" if isinstance(last, cmd.CloseRun) else "nothing more at that point"
        raise NondeterminismError(
            _text(
                f"event {missing.seq} of its history is {describe(missing.body)}",
                asked_text,
                last,
                "a command is missing",
            )
        )
    if len(commands) > len(recorded):
        surplus = commands[len(recorded)]
        end = recorded[-1].seq if recorded else cause.seq
        raise NondeterminismError(
            _text(
                f"its history holds no command there, after event {end} ({cause.kind} is event {cause.seq})",
                describe(surplus.event()),
                surplus,
                "a command too many",
            )
        )


def not_open(event: Event, ended: bool) -> NondeterminismError:
    """Returns the error for an event that the code, as it is now, does not wait for."""
    why = "the code has returned before it" if ended else "the code has nothing like that open"
    return NondeterminismError(
        f"Workflow code differs from its history: event {event.seq} of its history is {describe(event.body)}, but {why}. "
        f"{_ADVICE}"
    )


def describe(body: EventBody) -> str:
    """Returns an event in words: its kind and what is compared of it."""
    shown = [f"{_TEXTS[name]} {_value(body, name)}" for name in _compared(body) if _shown(body, name)]
    return f"{type(body).__name__}({', '.join(shown)})"


_ADVICE = (
    "Deploy the code that wrote this history, or code that does the same up to there; the run then goes on by itself."
)
_OTHER_VALUE = (
    "If the code is the same, the value differs from one replay to the next: take times, random numbers, UUIDs and "
    "settings from workflow.now(), workflow.random(), workflow.uuid4() and workflow.side_effect(). "
)


def _text(history: str, asked: str, command: cmd.Command | None, difference: str) -> str:
    line = f" at {command.line}" if command is not None and command.line else ""
    hint = _OTHER_VALUE if difference in ("another input", "another duration") else ""
    return (
        f"Workflow code differs from its history ({difference}): {history}, but the code asked for {asked}{line}. "
        f"{hint}{_ADVICE}"
    )


def _difference(recorded: EventBody, asked: EventBody) -> str:
    if type(recorded) is not type(asked):
        return "another command"
    for name in _compared(recorded):
        if getattr(recorded, name) != getattr(asked, name):
            return f"another {_TEXTS[name]}"
    return ""


def _compared(body: EventBody) -> tuple[str, ...]:
    if isinstance(body, ev.TimerStarted):
        return ("number", "duration_us", "due_at") if body.duration_us is None else ("number", "duration_us")
    fields = _FIELDS.get(type(body))
    if fields is not None:
        return fields
    return tuple(name for name in ("number", "name") if hasattr(body, name))


def _shown(body: EventBody, name: str) -> bool:
    return name == "number" or getattr(body, name) not in (None, "")


def _value(body: EventBody, name: str) -> Any:
    value = getattr(body, name)
    return repr(value) if isinstance(value, str) else value
