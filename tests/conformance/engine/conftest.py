"""One engine on each database: every test of this folder runs on PostgreSQL and on SQLite."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.runtime.registry import default_registry
from tests.conformance.engine.world import World


@pytest.fixture
def make_world(database_url: str) -> Iterator[Callable[..., World]]:
    """A factory of engines on one database."""
    made: list[World] = []

    def make(**settings: Any) -> World:
        made.append(World(database_url, default_registry(), **settings))
        return made[-1]

    yield make
    for world in made:
        world.db.dispose()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """An engine under the test's hand."""
    return make_world()
