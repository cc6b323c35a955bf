"""What goes wrong in one chore of a worker's housekeeping does not make the worker look dead."""

from __future__ import annotations

import os

import pytest

from orchestrator.engine import attempts
from orchestrator.engine.attempts import Ticket
from orchestrator.store import workers
from orchestrator.worker import identity
from orchestrator.worker.housekeeping import Housekeeping, WorkerFacts
from orchestrator.worker.request import Gone
from tests.conformance.engine.world import World


def test_a_lost_attempt_that_cannot_be_recorded_costs_no_sign_of_life(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = WorkerFacts(hostname="h", queues=lambda: ["q"], pids=lambda: [os.getpid()], tasks=[], has_children=False)
    housekeeping = Housekeeping(world.engine, facts)
    recorded: list[Ticket] = []

    def report(_engine: object, ticket: Ticket, *_args: object, **_options: object) -> bool:
        if ticket.number == 1:
            raise ValueError("poison")
        recorded.append(ticket)
        return True

    monkeypatch.setattr(attempts, "report_gone", report)
    for number in (1, 2):
        ticket = Ticket(run_id="r", number=number, attempt=1, nonce="n", published_at=0)
        housekeeping.report_gone(ticket, Gone.DIED)
    housekeeping.do_chores()
    assert [ticket.number for ticket in recorded] == [2]
    with world.db.read() as conn:
        assert workers.get(conn, identity.worker_id()) is not None
