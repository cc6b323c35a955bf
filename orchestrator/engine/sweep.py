"""The sweep: what time does to rows (protocol rule P8).

Every timer, retry, deadline and unclaimed message is a row with a due time; the row is the truth and firing
it is taking it, so there is one winner however many sweeps run. A tick turns what is due into inbox rows and
messages, in bounded batches, until no batch is full or its time is spent. It then looks one interval ahead
and sleeps to the next timer's due time, so that timers are exact to milliseconds without any hint.

Who runs it: beat, each interval; and a housekeeping thread in every worker whenever the last tick is old.
The tick's row makes sure that one of them does it at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.engine import outbox, sweeping
from orchestrator.engine.core import Engine
from orchestrator.store import sweeps, timers
from orchestrator.store.sweeps import Tick
from orchestrator.types import SECOND, Micros

logger = logging.getLogger(__name__)

BATCH = 200
"""Rows one transaction of the sweep takes."""

Step = Callable[[Engine, Tick, int], int]
STEPS: tuple[tuple[str, Step], ...] = (
    ("timers", sweeping.fire_timers),
    ("sends", sweeping.send_activities),
    ("deadlines", sweeping.pass_deadlines),
    ("heartbeats", sweeping.pass_heartbeats),
    ("lost", sweeping.find_lost),
    ("inboxes", sweeping.wake_inboxes),
    ("runs", sweeping.wake_runs),
    ("outbox", outbox.deliver),
)
"""What a tick does, in order. Each step takes at most a batch and returns how many rows it acted on."""


@dataclass(kw_only=True)
class SweepReport:
    """What one tick did: rows acted on, by step."""

    counts: dict[str, int] = field(default_factory=dict)


def sweep(
    engine: Engine,
    *,
    look_ahead: bool = True,
    aside: Callable[[Callable[[], None]], object] | None = None,
    interval_us: Micros | None = None,
) -> SweepReport | None:
    """Runs one tick, unless somebody else's is running or the last one is younger than the interval.

    Args:
        engine: The engine.
        look_ahead: Sleep to timers that are due within the interval and fire them too.
        aside: Does the looking ahead somewhere else, where the caller must not sleep.
        interval_us: Replaces ``orchestrator_sweep_interval``, where time is made to jump.
    """
    if interval_us is None:
        interval_us = engine.settings.micros("sweep_interval")
    tick = engine.db.run(lambda conn: sweeps.tick(conn, engine.db.now(conn), interval_us), what="sweep")
    if tick is None:
        return None
    report = SweepReport()
    end = engine.monotonic() + interval_us / SECOND
    _run_steps(engine, tick, report, end)
    if look_ahead and aside is not None:
        aside(lambda: _fire_ahead(engine, tick, report, end))
    elif look_ahead:
        _fire_ahead(engine, tick, report, end)
    return report


def _run_steps(engine: Engine, tick: Tick, report: SweepReport, end: float) -> None:
    pending = dict(STEPS)
    while pending:
        for name, step in list(pending.items()):
            count = _isolated(engine, tick, name, step)
            report.counts[name] = report.counts.get(name, 0) + count
            if count < BATCH:
                del pending[name]
        if engine.monotonic() > end:
            return


def _isolated(engine: Engine, tick: Tick, name: str, step: Step) -> int:
    # A step that fails must not keep the others from their work; the next tick tries it again.
    try:
        return step(engine, tick, BATCH)
    except Exception:
        logger.exception("Step %r of the sweep failed; the next tick tries again.", name)
        return 0


def _fire_ahead(engine: Engine, tick: Tick, report: SweepReport, end: float) -> None:
    while (left := end - engine.monotonic()) > 0:
        wait = _until_next_timer(engine)
        if wait is None or wait / SECOND > left:
            return
        engine.sleep(max(0, wait) / SECOND)
        count = _isolated(engine, tick, "timers", sweeping.fire_timers)
        report.counts["timers"] += count


def _until_next_timer(engine: Engine) -> Micros | None:
    with engine.db.read() as conn:
        due = timers.next_due(conn)
        return None if due is None else due - engine.db.now(conn)
