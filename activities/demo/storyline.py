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


@dataclass(frozen=True, kw_only=True)
class Record:
    """Everything recorded of one order: its history, and its rows of ``calls`` and ``ledger``, oldest first."""

    moments: Sequence[Moment]
    calls: Sequence[Entry]
    effects: Sequence[Entry]


def lanes_of(record: Record, gap: Gap, dead_pids: Collection[int]) -> list[Lane]:
    """Return a lane for each step in the order they were first asked for, and one for the approval when there was one.

    Args:
        record: what is recorded of the order.
        gap: when no process lived.
        dead_pids: the processes that were killed.
    """
    names = {moment.number: moment.name for moment in record.moments if moment.kind == "ActivityScheduled"}
    closed: dict[str, list[int]] = {}
    for moment in record.moments:
        name = names.get(moment.number)
        if name and moment.kind in {"ActivityCompleted", "ActivityFailed"}:
            closed.setdefault(name, []).append(moment.at)
    lanes = []
    for name in dict.fromkeys(name for name in names.values() if name):
        calls = [call for call in record.calls if _activity(call) == name]
        effects = sum(_activity(entry) == name for entry in record.effects)
        stretches = [_stretch(place, calls, closed.get(name, []), gap, dead_pids) for place in range(len(calls))]
        lanes.append(Lane(label=name, stretches=stretches, note=_note(len(calls), effects)))
        if name == "charge" and (approval := _approval_lane(record.moments, closed.get(name, []))):
            lanes.append(approval)
    return lanes


def _activity(entry: Entry) -> str:
    # Reminders are numbered: "remind_approver 2".
    return entry.step.split()[0]


def _stretch(
    place: int, calls: Sequence[Entry], closed: Sequence[int], gap: Gap, dead_pids: Collection[int]
) -> Stretch:
    """Return one call's stretch: until its outcome was recorded, its process died, or the gateway failed."""
    call = calls[place]
    following = calls[place + 1].at if place + 1 < len(calls) else None
    end = next((at for at in closed if at >= call.at and (following is None or at <= following)), None)
    if end is not None:
        return Stretch(start=call.at, end=end)
    if call.pid in dead_pids and call.at <= gap.start and (following is None or following > gap.start):
        return cut(Stretch(start=call.at, end=gap.start), gap.start)
    half = int(latency_of(call.order_id, call.step).total_seconds() * 500_000)
    return Stretch(start=call.at, end=call.at + half, ends_with="!")


def _note(calls: int, effects: int) -> str:
    if calls == effects == 1:
        return ""
    return f"{calls} call{'s' if calls != 1 else ''}, {effects or 'no'} effect{'s' if effects != 1 else ''}"


def _approval_lane(moments: Sequence[Moment], charged: Sequence[int]) -> Lane | None:
    answers = [moment.at for moment in moments if moment.kind == "SignalReceived"]
    if not answers or not charged:
        return None
    waiting = Stretch(start=charged[0], end=answers[0], kind=Kind.WAIT, ends_with="▲")
    return Lane(label=APPROVAL, stretches=[waiting], note="answered by a signal")
