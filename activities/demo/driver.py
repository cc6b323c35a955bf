"""The demo's story, told from outside: orders, a killed server, its return, approvals, and the count.

The driver reaches the workflows through their database only; the server processes are its children, which it kills
as a power cut would.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from activities.demo.errors import DemoFailed
from activities.demo.outage import Outage, Phase
from activities.demo.progress import Mark, Track
from activities.demo.report import Account
from activities.demo.settings import ARRIVE_WITHIN, LIVENESS_TIMEOUT, RULES
from activities.demo.sides import ChainSide, Side
from activities.demo.storyline import Record, lanes_of
from activities.demo.timeline import Gap, draw
from activities.demo.view import Frame, View
from activities.demo.workflow_side import WorkflowSide
from activities.orders.models import Order

QUIET_FOR = 3.0
LOOK_EVERY = 0.15
EARLY_ORDERS = 3
PATIENCE = 60.0
LEGEND = "█ a call   ✗ its process died   ! the gateway failed   ┄ waiting   ▲ signal   ░ no process lived"

_STATES = {
    Phase.STARTING: "the servers start; orders already come in",
    Phase.WORKING: "the servers are at work",
    Phase.DEAD: "no server lives; orders still come in",
    Phase.RESTARTING: "the server starts again; orders still come in",
    Phase.BACK: "the server is back",
}


class Story:
    """One telling of the demo over two sides that are given the same orders and meet the same kill."""

    def __init__(
        self,
        ours: WorkflowSide,
        bare: ChainSide,
        orders: Sequence[Order],
        view: View,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._ours, self._bare = ours, bare
        self._sides: tuple[Side, ...] = (ours, bare)
        self._orders = orders
        self._view = view
        self._clock, self._sleep = clock, sleep
        self._outages: dict[Side, Outage] = {
            side: Outage(side, orders, clock=clock, sleep=sleep) for side in self._sides
        }
        self._began = clock()
        self._opened: float | None = None
        self._arrived = 0
        self._answered: set[str] = set()
        self._open_at_kill: list[str] = []
        self._ended_after: dict[Side, float | None] = {ours: None, bare: None}
        self._bare_changed = 0.0
        self._tracks: dict[Side, list[Track]] = {}

    def play(self) -> None:
        """Tell the whole story; afterwards ``accounts`` and ``pictures`` have what it came to.

        Raises:
            DemoFailed: when something did not happen in time.
            ServerFailed: when a server process ended by itself.
        """
        self._ours.prepare()
        self._began = self._clock()
        for side in self._sides:
            side.process.start()
        self._until(lambda: self._outages[self._ours].phase is Phase.BACK)
        self._until(lambda: self._ours.retried() >= len(self._ours.lost))
        self._tell_recovery()
        self._until(self._all_ended, "approvals are sent as signals", answer=True)
        self._view.say(f"{len(self._answered)} orders were approved or refused by a signal; all workflows have ended.")
        self._until(self._bare_is_quiet, "waiting whether the bare chains go on")
        self._view.show(self._frame("done", closing=True))

    def accounts(self) -> list[Account]:
        """Return what each side did."""
        return [
            Account(
                name=name,
                tracks=self._tracks[side],
                tally=side.tally(),
                repeated=side.repeated_calls(),
                seconds=self._ended_after[side],
            )
            for name, side in (("workflows", self._ours), ("bare Celery chains", self._bare))
        ]

    def pictures(self, width: int) -> list[str]:
        """Return the timelines of an order that was cut off and of one that waited for approval; best, they are one."""
        cut_off = [attempt.order_id for attempt in self._ours.lost]
        open_then = [order for order in self._orders if order.order_id in self._open_at_kill]
        first = min(open_then, key=lambda order: (order.order_id not in cut_off, not RULES.needs_approval(order)))
        chosen = [first]
        if not RULES.needs_approval(first):
            chosen += [order for order in open_then if RULES.needs_approval(order)][:1]
        return [line for order in chosen for line in (*self._picture(order, width), "")] + [LEGEND]

    def _picture(self, order: Order, width: int) -> list[str]:
        record = Record(
            moments=self._ours.moments(order.order_id),
            calls=[call for call in self._ours.shop.calls() if call.order_id == order.order_id],
            effects=[entry for entry in self._ours.shop.ledger() if entry.order_id == order.order_id],
        )
        outage = self._outages[self._ours]
        gap = Gap(start=int(outage.killed_at * 1_000_000), end=int(outage.back_at * 1_000_000))
        outcome = self._ours.outcome(order.order_id)
        approved = f", approved by {outcome.approved_by}" if outcome.approved_by else ""
        head = f"Order {order.order_id} of {order.customer}, {order.price}: {outcome.ending}{approved}"
        return [head, *draw(lanes_of(record, gap, self._ours.dead_pids), gap, width=width)]

    # --- what is told -------------------------------------------------------------------------------------

    def _tell(self, side: Side, phase: Phase) -> None:
        outage, pid = self._outages[side], side.process.pid
        match phase:
            case Phase.WORKING:
                self._view.say(f"Process {pid} takes work for the {side.kind}.")
            case Phase.DEAD:
                gone = "gone" if side.process.gone else "STILL THERE"
                self._view.say(
                    f"kill -9 {outage.killed_pid} at {outage.share:.0%} of the steps of the {side.kind}: "
                    f"the process is {gone}. {self._damage(side)}"
                )
            case Phase.BACK:
                after = outage.back_at - outage.killed_at
                self._view.say(f"The {side.kind} have a server again: process {pid}, {after:.1f} s after the kill.")
            case _:
                pass

    def _damage(self, side: Side) -> str:
        if side is not self._ours:
            return f"{self._outages[side].running} tasks were running."
        self._open_at_kill = self._ours.open_orders()
        held = ", ".join(f"{attempt.step} of {attempt.order_id}" for attempt in self._ours.lost)
        return (
            f"{len(self._open_at_kill)} workflows were open, {len(self._ours.lost)} activities were running: "
            f"{held or 'none'}."
        )

    def _tell_recovery(self) -> None:
        waited = self._clock() - self._outages[self._ours].back_at
        self._view.say(
            f"All {len(self._open_at_kill)} open workflows go on from the database; {self._ours.retried()} of "
            f"{len(self._ours.lost)} cut-off attempts were made again within {waited:.1f} s (a process that is silent "
            f"for {LIVENESS_TIMEOUT.total_seconds():.0f} s counts as dead here, 30 s by default)."
        )

    # --- what is waited for -------------------------------------------------------------------------------

    def _all_ended(self) -> bool:
        return self._ended_after[self._ours] is not None

    def _bare_is_quiet(self) -> bool:
        outage = self._outages[self._bare]
        quiet_since = max(self._bare_changed, outage.back_at)
        back = outage.phase is Phase.BACK and self._clock() - quiet_since > QUIET_FOR
        return back or self._ended_after[self._bare] is not None

    def _until(self, happened: Callable[[], bool], state: str | None = None, *, answer: bool = False) -> None:
        patience = PATIENCE + len(self._orders) / 4
        deadline = self._clock() + patience
        while not happened():
            self._tend()
            said = state or _STATES[self._outages[self._ours].phase]
            if self._clock() > deadline:
                raise DemoFailed(f"nothing came of {said!r} within {patience:.0f} s")
            self._arrive()
            self._look()
            if answer:
                self._answer_some()
            self._view.show(self._frame(said))
            self._sleep(LOOK_EVERY)

    # --- one look at a time -------------------------------------------------------------------------------

    def _tend(self) -> None:
        for side in self._sides:
            if begun := self._outages[side].tend():
                self._tell(side, begun)
        if self._opened is None and all(outage.phase is not Phase.STARTING for outage in self._outages.values()):
            self._opened = self._clock()

    def _arrive(self) -> None:
        """Give in the orders that are due: some before there is a server, then evenly, whether or not one lives."""
        share = 0.0 if self._opened is None else (self._clock() - self._opened) / ARRIVE_WITHIN.total_seconds()
        due = min(len(self._orders), EARLY_ORDERS + int(share * len(self._orders)))
        for order in self._orders[self._arrived : due]:
            for side in self._sides:
                side.start(order)
        self._arrived = max(self._arrived, due)

    def _look(self) -> None:
        for side in self._sides:
            tracks = side.tracks(self._orders)
            if side is self._bare and tracks != self._tracks.get(side):
                self._bare_changed = self._clock()
            self._tracks[side] = tracks
            if self._ended_after[side] is None and all(track.ending for track in tracks):
                self._ended_after[side] = self._clock() - self._began

    def _answer_some(self) -> None:
        """Answer some of the orders that wait for an approval: yes, but no to the last of the big ones."""
        big = [order.order_id for order in self._orders if RULES.needs_approval(order)]
        for order_id in sorted(self._waiting() - self._answered)[: 1 + len(big) // 20]:
            if order_id == big[-1] and len(big) > 1:
                self._ours.refuse(order_id, "bo")
            else:
                self._ours.approve(order_id, "ann")
            self._answered.add(order_id)

    def _waiting(self) -> frozenset[str]:
        return frozenset(
            track.order.order_id
            for track in self._tracks[self._ours]
            if RULES.needs_approval(track.order)
            and track.ending is None
            and track.marks["charge"] is Mark.DONE
            and track.marks["ship"] is Mark.WAITING
            and track.marks["notify"] is Mark.WAITING
        )

    def _frame(self, state: str, *, closing: bool = False) -> Frame:
        return Frame(
            seconds=self._clock() - self._began,
            state=state,
            workflows=self._tracks[self._ours],
            chains=self._tracks[self._bare],
            given=frozenset(order.order_id for order in self._orders[: self._arrived]),
            waiting=self._waiting() - self._answered,
            closing=closing,
        )
