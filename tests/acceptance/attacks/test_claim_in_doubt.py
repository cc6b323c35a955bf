"""The database is lost at the very commit of a claim, for longer than the claim is tried again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from orchestrator import workflow
from orchestrator.engine import attempts
from orchestrator.errors import Unavailable
from orchestrator.model.records import ActivityState
from orchestrator.store.failures import CommitUnknown, Interrupted
from tests.conformance.engine.world import World


@workflow.defn(name="attacks.doubt.one")
async def one() -> str:
    return str(await workflow.execute_activity("work"))


def test_an_attempt_whose_claim_was_committed_unheard_is_given_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.start("attacks.doubt.one")
    message = world.next_attempt()
    real, tries = world.db.write, 0

    @contextlib.contextmanager
    def cut_after_commit() -> Iterator[object]:
        nonlocal tries
        tries += 1
        if tries > 1:
            raise Interrupted("no database")
        with real() as conn:
            yield conn
        raise CommitUnknown("cut")

    with monkeypatch.context() as cut:
        cut.setattr(world.db, "write", cut_after_commit)
        with pytest.raises(attempts.ClaimUnknown) as caught:
            world.claim(message)
    assert world.activity(1).state is ActivityState.STARTED  # by a process that lives and does not run it
    assert attempts.release(world.engine, caught.value)
    assert world.activity(1).state is ActivityState.SCHEDULED
    assert not attempts.release(world.engine, caught.value)
    world.functions["work"] = lambda: "done"
    world.work()
    assert world.result() == "done"


def test_a_claim_that_never_reached_the_database_leaves_no_doubt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.start("attacks.doubt.one")
    message = world.next_attempt()

    @contextlib.contextmanager
    def down() -> Iterator[object]:
        raise Interrupted("no database")
        yield

    with monkeypatch.context() as cut:
        cut.setattr(world.db, "write", down)
        with pytest.raises(Unavailable) as caught:
            world.claim(message)
    assert not isinstance(caught.value, attempts.ClaimUnknown)
