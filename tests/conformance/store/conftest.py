"""One suite over both databases; `make_db` opens further pools, as other processes would have them."""

from collections.abc import Callable, Iterator

import pytest

from orchestrator.store.database import Database


@pytest.fixture
def make_db(database_url: str) -> Iterator[Callable[..., Database]]:
    opened: list[Database] = []

    def make(**options: object) -> Database:
        opened.append(Database.open(database_url, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for database in opened:
        database.dispose()


@pytest.fixture
def db(make_db: Callable[..., Database]) -> Database:
    return make_db()


@pytest.fixture
def postgres_db(postgres_url: str) -> Iterator[Database]:
    database = Database.open(postgres_url, pool_size=10)
    yield database
    database.dispose()


@pytest.fixture
def sqlite_url(sqlite_url: str) -> str:
    """The store is tested as it is by default: every commit flushed."""
    return sqlite_url.partition("?")[0]


@pytest.fixture
def sqlite_db(sqlite_url: str) -> Iterator[Database]:
    database = Database.open(sqlite_url)
    yield database
    database.dispose()
