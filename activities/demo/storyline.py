"""Turns what is recorded of one order, its history and its calls, into the lanes of a timeline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from activities.demo.timeline import Gap, Kind, Lane, Stretch, cut
from activities.orders.effects import Entry
from activities.orders.fates import latency_of

APPROVAL = "approval"


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One event of a workflow's history: when (microseconds since the epoch), and about which numbered command."""

    kind: str
    at: int
    number: int | None = None
    name: str | None = None


def lanes_of(moments: Sequence[Moment], calls: Sequence[Entry], gap: Gap, dead_pids: Collection[int]) -> list[Lane]:
    """Return a lane for each step in the order they were first asked for, and one for the approval when there was one.

    Args:
        moments: the order's history.
        calls: the order's rows of ``calls``, oldest first.
        gap: when no process lived.
        dead_pids: the processes that were killed.
    """
    names = {moment.number: moment.name for moment in moments if moment.kind == "ActivityScheduled"}
    closed: dict[str, list[int]] = {}
    for moment in moments:
        name = names.get(moment.number)
        if name and moment.kind in {"ActivityCompleted", "ActivityFailed"}:
            closed.setdefault(name, []).append(moment.at)
    lanes = []
    for name in dict.fromkeys(name for name in names.values() if name):
        mine = [call for call in calls if call.step == name]
        lanes.append(_step_lane(name, mine, closed.get(name, []), gap, dead_pids))
        if name == "charge" and (approval := _approval_lane(moments, closed.get(name, []))):
            lanes.append(approval)
    return lanes


def _step_lane(name: str, calls: Sequence[Entry], closed: Sequence[int], gap: Gap, dead_pids: Collection[int]) -> Lane:
    stretches = []
    died = None
    for place, call in enumerate(calls):
        following = calls[place + 1].at if place + 1 < len(calls) else None
        end = next((at for at in closed if at >= call.at and (following is None or at <= following)), None)
        if end is not None:
            stretches.append(Stretch(start=call.at, end=end))
        elif call.pid in dead_pids:
            stretches.append(cut(Stretch(start=call.at, end=gap.start), gap.start))
            died = call
        else:
            half = int(latency_of(call.order_id, name).total_seconds() * 500_000)
            stretches.append(Stretch(start=call.at, end=call.at + half, ends_with="!"))
    return Lane(label=name, stretches=stretches, note=_note(calls, died))


def _note(calls: Sequence[Entry], died: Entry | None) -> str:
    if died is not None:
        return f"{len(calls)} calls: one died with process {died.pid}"
    failed = any(call.attempt > 1 for call in calls)
    return f"{len(calls)} calls: the gateway failed once" if failed else ""


def _approval_lane(moments: Sequence[Moment], charged: Sequence[int]) -> Lane | None:
    answers = [moment.at for moment in moments if moment.kind == "SignalReceived"]
    if not answers or not charged:
        return None
    reminders = sum(moment.kind == "TimerFired" for moment in moments)
    note = f"{reminders} reminder{'s' if reminders != 1 else ''}, then a signal"
    return Lane(
        label=APPROVAL, stretches=[Stretch(start=charged[0], end=answers[0], kind=Kind.WAIT, ends_with="▲")], note=note
    )
