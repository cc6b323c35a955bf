"""What pytest-alembic asks for: our migrations, on an empty database of either kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.config import Config
from pytest_alembic.plugin.fixtures import alembic_runner
from sqlalchemy import Engine

from orchestrator.store import migrate
from orchestrator.store.database import Database

__all__ = ["alembic_runner"]  # the plugin itself hides it unless its command line option is given


@pytest.fixture
def empty_db(empty_database_url: str) -> Iterator[Database]:
    database = Database.open(empty_database_url)
    yield database
    database.dispose()


@pytest.fixture
def alembic_engine(empty_db: Database) -> Engine:
    return empty_db.engine


@pytest.fixture
def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    return config
