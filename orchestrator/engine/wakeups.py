"""Wake-ups: telling some worker that a run's inbox holds something, after the commit that put it there.

A wake-up is skipped when, *after* the inserter's commit, an older row of the same run is still undrained
and young: whoever drains that one commits later than this look, and re-reads the inbox after its commit,
so it sees the new row too (protocol rule P2). Looking before the commit would lose wake-ups: the drainer
could commit and re-read in between.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from orchestrator.engine.core import Engine
from orchestrator.errors import Unavailable
from orchestrator.model.records import RunRecord
from orchestrator.store import inbox, queues, runs
from orchestrator.transport.messages import WakeDecision
from orchestrator.types import Micros

logger = logging.getLogger(__name__)


def note_arrival(engine: Engine, queue: str, published_at: Micros) -> None:
    """Notes how far a queue was consumed: the sweep sends again what was published before that and never came."""

    def write(queue: str, published_at: Micros) -> None:
        try:
            engine.db.run(lambda conn: queues.note_progress(conn, queue, published_at), what="progress")
        except Unavailable:
            # A later message tells it; whoever handles this one has better things to do than to fail.
            logger.debug("How far queue %r was consumed can't be noted now.", queue, exc_info=True)

    engine.progress.note(queue, published_at, write)


def wake_message(run: RunRecord, now: Micros) -> WakeDecision:
    """Returns the message that wakes a run."""
    return WakeDecision(
        run_id=run.run_id,
        workflow_id=run.workflow_id,
        workflow_type=run.workflow_type,
        queue=run.queue,
        published_at=now,
    )


def wake(engine: Engine, run_ids: Iterable[str]) -> None:
    """Wakes runs, whatever their inbox holds. Call it after the commit."""
    with engine.db.read() as conn:
        now = engine.db.now(conn)
        found = [run for run_id in dict.fromkeys(run_ids) if (run := runs.get(conn, run_id)) is not None]
    engine.transport.publish([wake_message(run, now) for run in found])


def wake_for_row(engine: Engine, run_id: str, row_id: int) -> None:
    """Wakes a run for an inbox row that was just committed, unless an older row does it already."""
    with engine.db.read() as conn:
        now = engine.db.now(conn)
        young = now - engine.settings.micros("resend_after") // 2
        if inbox.has_older(conn, run_id, row_id, young):
            return
        run = runs.get(conn, run_id)
    if run is not None:
        engine.transport.publish([wake_message(run, now)])
