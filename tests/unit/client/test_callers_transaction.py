"""Starting and signalling in the caller's own transaction: all of it happens with the caller's commit, or none."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.orm import Session

from orchestrator.client import WorkflowClient
from orchestrator.errors import InvalidArgument, WorkflowAlreadyStarted, WorkflowNotFound
from orchestrator.model.records import RunStatus
from tests.conformance.engine.world import World
from tests.unit.client.flows import Approval, echo, waiter


@pytest.fixture
def theirs(world: World) -> Iterator[sqlalchemy.Engine]:
    """The team's own engine on the same database."""
    engine = sqlalchemy.create_engine(world.db.engine.url)
    yield engine
    engine.dispose()


def test_what_is_committed_runs_after_the_flush(durable: WorkflowClient, world: World, theirs: sqlalchemy.Engine):
    with theirs.begin() as connection:
        handle = durable.start(Approval.run, 1, id="w", connection=connection)
        receipt = handle.signal(Approval.approve, "ann", connection=connection)
        assert (handle.created, receipt.stored, receipt.run_id) == (True, True, None)
        assert world.transport.pop() is None
    assert world.transport.pop() is None, "nothing is sent before the flush"
    durable.flush()
    world.work()
    assert handle.result(timeout=5) == "1 by ann"


def test_what_is_rolled_back_never_was(durable: WorkflowClient, world: World, theirs: sqlalchemy.Engine):
    open_run = durable.start(waiter, id="open")
    world.work()
    with theirs.connect() as connection:
        durable.start(echo, "a", id="w", connection=connection)
        open_run.signal("go", "home", connection=connection)
        connection.rollback()
    durable.flush()
    world.work()
    assert [item.id for item in durable.list().items] == ["open"]
    assert open_run.describe().status is RunStatus.RUNNING


def test_without_a_flush_the_sweep_finds_it(durable: WorkflowClient, world: World, theirs: sqlalchemy.Engine):
    with theirs.begin() as connection:
        durable.start(waiter, id="w", connection=connection).signal("go", "home", connection=connection)
    world.tick()
    world.work()
    assert durable.get_handle("w").result(timeout=5) == "home"


def test_a_flush_before_the_commit_is_harmless_and_the_next_one_wakes(
    durable: WorkflowClient, world: World, theirs: sqlalchemy.Engine
):
    if world.db.dialect == "sqlite":
        pytest.skip("on SQLite the open transaction keeps other writers out")
    with theirs.begin() as connection:
        handle = durable.start(echo, "a", connection=connection)
        durable.flush()
        assert world.transport.pop() is None
    durable.flush()
    world.work()
    assert handle.result(timeout=5) == "a"


def test_a_session_of_the_orm_will_do(durable: WorkflowClient, world: World, theirs: sqlalchemy.Engine):
    with Session(theirs) as session:
        handle = durable.start(echo, "a", connection=session)
        session.commit()
    durable.flush()
    world.work()
    assert handle.result(timeout=5) == "a"


def test_a_run_that_was_found_is_signalled_by_its_own_types(durable: WorkflowClient, theirs: sqlalchemy.Engine):
    with theirs.begin() as connection:
        durable.start(Approval.run, 1, id="w", connection=connection)
        # Not committed, so only this transaction can tell what type it is.
        with pytest.raises(InvalidArgument) as caught:
            durable.get_handle("w").signal("approve", 5, connection=connection)
        assert caught.value.argument == "by"
        assert durable.get_handle("w").signal("approve", "ann", connection=connection).stored
        with pytest.raises(WorkflowNotFound):
            durable.get_handle("nobody").signal("approve", "ann", connection=connection)


@pytest.mark.parametrize("connection", ["postgresql://localhost/shop", 5, object()])
def test_what_is_no_connection_is_refused_by_name(durable: WorkflowClient, connection: Any):
    handle = durable.start(waiter)
    for call in (
        lambda: durable.start(echo, "a", connection=connection),
        lambda: handle.signal("stop", connection=connection),
    ):
        with pytest.raises(InvalidArgument) as caught:
            call()
        assert caught.value.argument == "connection"


def test_the_policies_hold_in_a_transaction_too(durable: WorkflowClient, theirs: sqlalchemy.Engine):
    durable.start(echo, "a", id="w")
    with theirs.begin() as connection:
        assert durable.start(echo, "a", id="w", connection=connection).created is False
        with pytest.raises(WorkflowAlreadyStarted):
            durable.start(echo, "b", id="w", connection=connection)
        with pytest.raises(InvalidArgument) as caught:
            durable.start(echo, "a", id="w", id_reuse_policy="terminate_existing", connection=connection)
        assert caught.value.argument == "id_reuse_policy"
