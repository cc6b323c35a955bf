"""Where each order stands, read from the shop's database: one reading for workflows and for bare chains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from activities.orders.effects import Entry
from activities.orders.fates import STEPS
from activities.orders.models import Ending, Order

UNDOING = {"release_stock": "reserve_stock", "refund": "charge", "recall_parcel": "ship", "void_invoice": "invoice"}
_REFUSED_AT = {"reserve_stock": Ending.OUT_OF_STOCK, "charge": Ending.DECLINED, "ship": Ending.UNDELIVERABLE}


class Mark(StrEnum):
    """How far one step of one order is."""

    WAITING = "○"
    RUNNING = "◐"
    CUT_OFF = "✗"  # its process died, and nobody has begun it again
    DONE = "●"
    REFUSED = "–"
    UNDONE = "↶"


@dataclass(frozen=True, kw_only=True)
class Track:
    """One order on its way. ``ending`` is None until the customer was told."""

    order: Order
    begun: bool
    marks: Mapping[str, Mark]
    ending: Ending | None

    @property
    def cut_off(self) -> bool:
        """Whether its last step died with its process and nobody has gone on yet."""
        return Mark.CUT_OFF in self.marks.values()

    @property
    def moving(self) -> bool:
        """Whether it has begun and not ended."""
        return self.begun and self.ending is None


def read_tracks(
    orders: Sequence[Order], calls: Iterable[Entry], ledger: Iterable[Entry], dead_pids: Collection[int]
) -> list[Track]:
    """Return where each of the orders stands, in their order.

    Args:
        orders: the orders.
        calls: all rows of ``calls``, oldest first.
        ledger: all rows of ``ledger``.
        dead_pids: the processes that were killed.
    """
    last_call: dict[str, dict[str, Entry]] = defaultdict(dict)
    for call in calls:
        last_call[call.order_id][call.step] = call
    effects: dict[str, set[str]] = defaultdict(set)
    for entry in ledger:
        effects[entry.order_id].add(entry.step)
    return [_track(order, last_call[order.order_id], effects[order.order_id], dead_pids) for order in orders]


def _track(order: Order, calls: Mapping[str, Entry], effects: Collection[str], dead_pids: Collection[int]) -> Track:
    gone_back = any(step in calls for step in UNDOING) or ("notify" in calls and "ship" not in effects)
    marks = {step: _mark(step, calls, effects, dead_pids, gone_back) for step in STEPS}
    for undo, step in UNDOING.items():
        if undo in effects:
            marks[step] = Mark.UNDONE
    return Track(order=order, begun=bool(calls), marks=marks, ending=_ending(marks))


def _mark(
    step: str, calls: Mapping[str, Entry], effects: Collection[str], dead_pids: Collection[int], gone_back: bool
) -> Mark:
    if step in effects:
        return Mark.DONE
    if step not in calls:
        return Mark.WAITING
    if gone_back and step != "notify":
        return Mark.REFUSED
    return Mark.CUT_OFF if calls[step].pid in dead_pids else Mark.RUNNING


def _ending(marks: Mapping[str, Mark]) -> Ending | None:
    if marks["notify"] is not Mark.DONE:
        return None
    for step, ending in _REFUSED_AT.items():
        if marks[step] is Mark.REFUSED:
            return ending
    return Ending.SHIPPED if marks["ship"] is Mark.DONE else Ending.REFUSED


def share_done(tracks: Sequence[Track]) -> float:
    """Return which share of all steps of all orders is done, from 0 to 1; the rest of an ended order counts as done."""
    done = sum(
        len(STEPS) if track.ending else sum(mark in {Mark.DONE, Mark.UNDONE} for mark in track.marks.values())
        for track in tracks
    )
    return done / (len(STEPS) * len(tracks)) if tracks else 1.0


def running_steps(tracks: Iterable[Track]) -> int:
    """Return how many steps are asked for and not done, by the shop's own rows."""
    return sum(mark is Mark.RUNNING for track in tracks for mark in track.marks.values())
