"""A client on a whole engine, on each database, with a clock that stands still."""

from collections.abc import Iterator

import pytest

from orchestrator.client import WorkflowClient
from orchestrator.runtime.registry import default_registry
from tests.conformance.engine.world import World
from tests.unit.client import flows  # noqa: F401 - defines the workflows that the tests start


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """The engine under the test's hand."""
    made = World(database_url, default_registry())
    yield made
    made.db.dispose()


@pytest.fixture
def durable(world: World) -> WorkflowClient:
    """A client that lets the engine work, and time pass, while it waits."""

    def wait(seconds: float) -> None:
        world.work()
        world.engine.sleep(seconds)

    return WorkflowClient(lambda: world.engine, sleep=wait)
