"""Drives one run's code without an engine: applies events, keeps the history, replays it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from orchestrator.model import commands as cmd
from orchestrator.model import events as ev
from orchestrator.model.failures import Failure, FailureKind, decode_failure, encode_failure
from orchestrator.model.options import ActivityOptions
from orchestrator.model.payloads import CallSignature, PayloadConverter
from orchestrator.runtime import context
from orchestrator.runtime.definition import WorkflowDefinition, define
from orchestrator.runtime.instance import Instance, RunInfo

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
CONVERTER = PayloadConverter()

C = TypeVar("C", bound=cmd.Command)


def act(name: str, *args: Any, hint: Any = Any, queue: str | None = None) -> asyncio.Future[Any]:
    """Schedules an activity, from workflow code."""
    execution = context.current()
    payload = CONVERTER.encode_call(CallSignature.untyped(), args, {})
    return execution.schedule_activity(name, queue, payload, ActivityOptions(), hint)


def new_instance(
    definition: WorkflowDefinition,
    *args: Any,
    run_id: str = "run-1",
    memo: Any = None,
    converter: PayloadConverter = CONVERTER,
) -> Instance:
    """Returns the code of a run that nothing was applied to."""
    info = RunInfo(
        workflow_id="wf-1",
        run_id=run_id,
        workflow_type=definition.name,
        namespace="default",
        queue="orders",
        lineage_id=run_id,
        started_at=START,
        memo=None if memo is None else converter.encode(memo).data,
    )
    encoded = converter.encode_args(args, definition.input_hints, names=definition.input_names)
    return Instance(definition, info, encoded.data, converter=converter, activity_defaults=ActivityOptions())


class Run:
    """One run: what was applied to it, what it asked for.

    Args:
        target: A workflow function or class, not decorated by ``@workflow.defn``.
        *args: Its inputs.
        signals: As in ``@workflow.defn``.
    """

    def __init__(
        self, target: Any, *args: Any, signals: Mapping[str, Any] | None = None, run_id: str = "run-1"
    ) -> None:
        self.definition = define(target, signals=signals)
        self.args, self.run_id = args, run_id
        self.instance = new_instance(self.definition, *args, run_id=run_id)
        self.history: list[ev.Event] = []
        self.commands: list[cmd.Command] = []
        self.now = START
        self._signals = 0

    # --- events ---------------------------------------------------------------------------------

    def apply(self, body: ev.EventBody, after: float = 0) -> list[cmd.Command]:
        """Applies an event, ``after`` seconds after the one before."""
        self.now += round(after * SECOND)
        issued = self.instance.apply(body, self.now)
        for recorded in (body, *(command.event() for command in issued)):
            self.history.append(ev.Event(seq=len(self.history) + 1, at=self.now, body=recorded))
        self.commands.extend(issued)
        return issued

    def start(self) -> list[cmd.Command]:
        return self.apply(ev.RunStarted())

    def complete(self, number: int, result: Any = None, after: float = 0) -> list[cmd.Command]:
        data = CONVERTER.encode(result).data
        return self.apply(ev.ActivityCompleted(number=number, attempt=1, result=data), after)

    def fail(self, number: int, type: str = "ValueError", message: str = "no", attempt: int = 3) -> list[cmd.Command]:
        failure = Failure(kind=FailureKind.APPLICATION, type=type, types=(f"shop.{type}",), message=message)
        data = encode_failure(CONVERTER, failure)
        return self.apply(ev.ActivityFailed(number=number, attempt=attempt, failure=data))

    def fire(self, number: int, after: float = 0) -> list[cmd.Command]:
        self.now = max(self.now, self.instance.open_timers[number])
        return self.apply(ev.TimerFired(number=number), after)

    def signal(self, name: str, *args: Any, after: float = 0) -> list[cmd.Command]:
        self._signals += 1
        payload = CONVERTER.encode_args(args, (), names=()).data
        return self.apply(ev.SignalReceived(name=name, signal_id=f"s{self._signals}", payload=payload), after)

    def cancel(self, reason: str = "enough") -> list[cmd.Command]:
        return self.apply(ev.CancelRequested(reason=reason))

    # --- looking --------------------------------------------------------------------------------

    def of(self, kind: type[C]) -> list[C]:
        """Returns the commands of one kind so far."""
        return [command for command in self.commands if isinstance(command, kind)]

    @property
    def closed(self) -> bool:
        return self.instance.closed

    @property
    def result(self) -> Any:
        """The result, after the run completed."""
        last = self.commands[-1]
        assert isinstance(last, cmd.CompleteRun), (last, self.failure if isinstance(last, cmd.FailRun) else "")
        return CONVERTER.decode(last.result)

    @property
    def failure(self) -> Failure:
        """The failure, after the run failed."""
        last = self.commands[-1]
        assert isinstance(last, cmd.FailRun), last
        return decode_failure(CONVERTER, last.failure)

    def query(self, name: str, *args: Any) -> Any:
        return CONVERTER.decode(self.instance.query(name, CONVERTER.encode_args(args, (), names=()).data).data)

    def kinds(self, since: int = 0) -> list[str]:
        """Returns the kinds of the events in history."""
        return [event.kind for event in self.history[since:]]

    # --- replay ---------------------------------------------------------------------------------

    def replayed(self, target: Any = None, events: Sequence[ev.Event] | None = None, **options: Any) -> Instance:
        """Returns a fresh instance that replayed the history, maybe of other code."""
        definition = self.definition if target is None else define(target, **options)
        instance = new_instance(definition, *self.args, run_id=self.run_id)
        instance.replay(self.history if events is None else events)
        return instance

    def restart(self) -> None:
        """Goes on with a fresh instance, as another process would."""
        self.instance = self.replayed()


def query_of(instance: Instance, name: str, *args: Any) -> Any:
    return CONVERTER.decode(instance.query(name, CONVERTER.encode_args(args, (), names=()).data).data)
