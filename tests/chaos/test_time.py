"""Time goes on when nobody has time: full slots and no beat cost a timer seconds, not its due time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.store import timers
from tests.chaos.conftest import APP, MakeYard
from tests.support.fixtures.processes import ProcessFactory
from tests.support.waiting import wait_until

NAP = 5.0
BUSY = 12.0


@pytest.mark.slow
def test_with_all_slots_busy_and_beat_gone_a_timer_fires_within_five_seconds(
    make_yard: MakeYard,
    rabbitmq_url: str,
    postgres_url: str,
    start_process: ProcessFactory,
    tmp_path: Path,
    figure: Callable[[str, str], None],
) -> None:
    yard = make_yard(rabbitmq_url, postgres_url)
    worker = yard.worker(concurrency=2)
    beat = [sys.executable, "-m", "celery", "-A", APP, "beat", "--schedule", str(tmp_path / "beat"), "--pidfile", ""]
    driving = start_process(beat, env=yard.env)
    wait_until(lambda: "Task orchestrator.sweep" in worker.logs(), 60)
    database = yard.durable.engine().db

    def due() -> int | None:
        with database.read() as conn:
            return timers.next_due(conn)

    busy = [yard.start("ch_hold", f"hold{slot}") for slot in range(2)]
    wait_until(lambda: all(yard.ledger.lines(f"hold{slot}") for slot in range(2)), 30)
    # The nap must be decided while a slot is free, so one is given back and taken again.
    yard.ledger.note("hold1.release")
    busy.pop().result(timeout=30)
    nap = yard.start("ch_nap", "nap", NAP)
    due_at = wait_until(due, 30)
    busy.append(yard.start("ch_hold", "hold2"))
    wait_until(lambda: yard.ledger.lines("hold2"), NAP, message="all slots busy before the timer is due")
    driving.kill()
    full_at = time.monotonic()

    wait_until(lambda: due() is None, NAP + 10)
    with database.read() as conn:
        late = (database.now(conn) - due_at) / 1e6
    figure("timer fired after its due time, with all slots busy and no beat", f"{late:.2f} s")
    assert late < 5
    assert not yard.ledger.lines("nap.woke")
    wait_until(lambda: time.monotonic() - full_at > BUSY, BUSY + 1)
    assert due() is None
    for slot in (0, 2):
        yard.ledger.note(f"hold{slot}.release")
    assert nap.result(timeout=30) == "rested"
    assert [handle.result(timeout=30) for handle in busy] == ["hold0", "hold2"]
