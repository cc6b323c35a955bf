"""Transactions commit or roll back as a whole, and are done again when the database asks for it."""

import threading
from collections.abc import Callable

import pytest
from sqlalchemy import text

from orchestrator.errors import ConfigurationError, InvalidArgument, SchemaOutdated, Unavailable
from orchestrator.store import runs
from orchestrator.store.database import Database
from orchestrator.store.failures import Interrupted
from orchestrator.store.retrying import Retrying
from orchestrator.types import SECOND, ManualClock, SystemClock
from tests.conformance.store.builders import a_run, get_run, put_run


def test_a_write_is_committed_at_its_end(db: Database) -> None:
    with db.write() as conn:
        runs.insert(conn, a_run())
    assert get_run(db) == a_run()


def test_a_write_that_an_error_leaves_is_rolled_back(db: Database) -> None:
    with pytest.raises(LookupError), db.write() as conn:
        runs.insert(conn, a_run())
        raise LookupError
    with db.read() as conn:
        assert runs.get(conn, "run-1") is None


def test_what_was_written_in_a_read_is_rolled_back(db: Database) -> None:
    with db.read() as conn:
        runs.insert(conn, a_run())
    with db.read() as conn:
        assert runs.get(conn, "run-1") is None


def test_run_returns_what_its_work_returns_and_does_not_repeat_the_works_own_errors(db: Database) -> None:
    calls = []

    def fails(_conn: object) -> None:
        calls.append(1)
        raise LookupError("mine")

    assert db.run(lambda conn: conn.scalar(text("SELECT 42")), what="test") == 42
    assert db.query(lambda conn: conn.scalar(text("SELECT 42")), what="test") == 42
    with pytest.raises(LookupError, match="mine"):
        db.run(fails, what="test")
    assert calls == [1]


def test_an_interrupted_transaction_is_done_again_from_its_beginning(db: Database) -> None:
    calls = []

    def twice_broken(conn: object) -> str:
        runs.insert(conn, a_run())  # type: ignore[arg-type]
        calls.append(1)
        if len(calls) < 3:
            raise Interrupted("broken off")
        return "done"

    assert db.run(twice_broken, what="test") == "done"
    assert len(calls) == 3
    assert get_run(db) == a_run()


def test_trying_again_ends_after_its_limit_with_an_error_that_says_what_to_do(
    make_db: Callable[..., Database],
) -> None:
    clock = [0.0]
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        clock[0] += seconds

    retrying = Retrying(limit=5.0, sleep=sleep, monotonic=lambda: clock[0], share=lambda: 1.0)
    db = make_db(retrying=retrying)

    def broken(_conn: object) -> None:
        raise Interrupted("the server is restarting")

    with pytest.raises(Unavailable, match=r"start a run: .* within 5 s\. the server is restarting\. Check that"):
        db.run(broken, what="start a run")
    assert pauses[:7] == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.5]
    assert sum(pauses) <= 5.0


def test_the_clock_runs_in_microseconds_also_inside_a_transaction(db: Database) -> None:
    before = SystemClock().now()
    with db.read() as conn:
        first = db.now(conn)
        threading.Event().wait(0.002)
        second = db.now(conn)
    assert second - first >= 2_000
    assert abs(first - before) < 5 * SECOND


def test_an_injected_clock_replaces_the_databases(make_db: Callable[..., Database]) -> None:
    db = make_db(clock=ManualClock(5))
    with db.read() as conn:
        assert db.now(conn) == 5


def test_a_missing_schema_is_told_as_such(empty_database_url: str) -> None:
    db = Database.open(empty_database_url)
    try:
        with pytest.raises(SchemaOutdated, match="workflow migrate"), db.read() as conn:
            runs.get(conn, "run-1")
        with pytest.raises(SchemaOutdated, match="workflow migrate"), db.lock_run("run-1"):
            pass
    finally:
        db.dispose()


def test_a_callers_own_transaction_is_written_through_and_left_to_the_caller(db: Database) -> None:
    with db.engine.connect() as theirs:
        with db.transaction_of(theirs) as conn:
            runs.insert(conn, a_run())
        theirs.rollback()
        with db.transaction_of(theirs) as conn:
            runs.insert(conn, a_run("run-2"))
        theirs.commit()
    with db.read() as conn:
        assert runs.get(conn, "run-1") is None
    assert get_run(db, "run-2").run_id == "run-2"


def test_a_callers_orm_session_will_do_too(db: Database) -> None:
    from sqlalchemy.orm import Session

    with Session(db.engine) as session:
        with db.transaction_of(session) as conn:
            runs.insert(conn, a_run())
        session.commit()
    assert get_run(db) == a_run()


@pytest.mark.parametrize("wrong", [None, "postgresql://", object()])
def test_something_else_than_a_connection_is_refused(db: Database, wrong: object) -> None:
    with pytest.raises(InvalidArgument, match="connection: give a SQLAlchemy"), db.transaction_of(wrong):
        pass


def test_a_connection_to_another_kind_of_database_is_refused(db: Database) -> None:
    other = Database.open("sqlite://" if db.dialect == "postgresql" else "postgresql://127.0.0.1:1/none")
    put_run(db)
    with db.engine.connect() as conn, pytest.raises(InvalidArgument, match="is on"), other.transaction_of(conn):
        pass


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("no url", "can't be read as a URL"),
        ("mysql://localhost/x", "mysql:// is not supported"),
        ("postgresql+asyncpg://localhost/x", "not supported"),
        ("sqlite:///x.db?synchronous=off", "synchronous may be normal, full or extra"),
        ("sqlite:////no/such/directory/x.db", "/no/such/directory of the SQLite file does not exist"),
    ],
)
def test_a_wrong_url_is_an_error_that_says_what_to_write(url: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Database.open(url)


def test_a_password_is_not_shown() -> None:
    shown = repr(Database.open("postgresql://me:secret@localhost/x"))
    assert "secret" not in shown
    assert "localhost/x" in shown


def test_a_server_that_is_not_there_is_unavailable() -> None:
    db = Database.open("postgresql://nobody@127.0.0.1:1/none", retrying=Retrying(limit=0.1))
    with pytest.raises(Unavailable, match="orchestrator_database_url"):
        db.run(lambda conn: conn.scalar(text("SELECT 1")), what="start")
    with pytest.raises(Unavailable), db.read():
        pass
    with pytest.raises(Unavailable, match="lock a run"), db.lock_run("run-1"):
        pass
