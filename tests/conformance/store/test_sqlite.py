"""What only SQLite does: one writer behind a queue, other processes, and a database in memory."""

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text

from orchestrator.errors import Unavailable
from orchestrator.model.records import InboxKind
from orchestrator.store import history, inbox, migrate, runs
from orchestrator.store.database import Database
from orchestrator.store.failures import DecisionOutdated
from orchestrator.store.retrying import Retrying
from tests.conformance.store.builders import a_run, get_run, put_run
from tests.support.processes import ManagedProcess


@pytest.fixture
def memory_db() -> Iterator[Database]:
    database = Database.open("sqlite://")
    migrate.create(database)
    yield database
    database.dispose()


# --- the file -------------------------------------------------------------------------------------


def test_the_file_is_durable_and_checks_its_foreign_keys(sqlite_db: Database) -> None:
    with sqlite_db.read() as conn:
        settings = {
            name: conn.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 1000}


def test_the_url_may_trade_the_last_commits_at_a_power_cut_for_speed(sqlite_url: str) -> None:
    db = Database.open(sqlite_url + "?synchronous=normal")
    with db.read() as conn:
        assert conn.exec_driver_sql("PRAGMA synchronous").scalar() == 1
    db.dispose()


def test_a_relative_path_stays_the_same_file_when_the_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    db = Database.open("sqlite:///here.db")
    monkeypatch.chdir("/")
    migrate.create(db)
    db.dispose()
    assert (tmp_path / "here.db").exists()


def test_a_writer_that_does_not_end_is_not_waited_for_for_ever(
    sqlite_url: str, sqlite_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.store.sqlite._PATIENCE", 0.05)
    db = Database.open(sqlite_url, retrying=Retrying(limit=0.0))
    with sqlite_db.write(), ThreadPoolExecutor(1) as threads:
        late = threads.submit(db.run, lambda conn: None, what="start")
        with pytest.raises(Unavailable, match="Another thread has been writing"):
            late.result(10)
    db.dispose()


def test_a_read_sees_one_state_while_others_write(sqlite_db: Database) -> None:
    with sqlite_db.read() as conn:
        assert runs.get(conn, "run-1") is None
        put_run(sqlite_db)
        assert runs.get(conn, "run-1") is None
    assert get_run(sqlite_db) == a_run()


def test_a_write_inside_a_write_of_the_same_thread_is_refused_not_waited_for(sqlite_db: Database) -> None:
    with sqlite_db.write(), pytest.raises(RuntimeError, match="use its connection"), sqlite_db.write():
        pass


def test_a_read_inside_a_write_is_fine(sqlite_db: Database) -> None:
    with sqlite_db.write() as conn:
        runs.insert(conn, a_run())
        with sqlite_db.read() as other:
            assert runs.get(other, "run-1") is None


def test_writers_in_one_process_queue_up_even_through_several_databases(sqlite_url: str) -> None:
    pools = [Database.open(sqlite_url, retrying=Retrying(limit=0.0)) for _ in range(4)]

    def write(db: Database) -> None:
        for _ in range(50):
            db.run(lambda conn: inbox.insert(conn, "run-1", InboxKind.SIGNAL, now=1, next_send_at=2), what="test")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, pools))
    with pools[0].read() as conn:
        assert inbox.count(conn, "run-1", 1000) == 200
    for db in pools:
        db.dispose()


def test_a_decision_is_outdated_when_another_process_decided_meanwhile(sqlite_db: Database) -> None:
    put_run(sqlite_db)
    with pytest.raises(DecisionOutdated), sqlite_db.lock_run("run-1") as lock:
        assert lock is not None
        lock.run()
        sqlite_db.run(lambda conn: runs.update(conn, "run-1", {"decision_token": "theirs"}), what="test")
        lock.connection()
    assert get_run(sqlite_db).decision_token == "theirs"
    with sqlite_db.lock_run("run-1") as lock:
        assert lock is not None  # everything was given back
        lock.enter_gate("run-1")
        lock.commit()


def test_a_run_that_was_deleted_meanwhile_is_outdated_too(sqlite_db: Database) -> None:
    put_run(sqlite_db)
    with pytest.raises(DecisionOutdated), sqlite_db.lock_run("run-1") as lock:
        assert lock is not None
        sqlite_db.run(lambda conn: conn.exec_driver_sql("DELETE FROM orchestrator_runs"), what="test")
        lock.run()


def test_workflow_code_runs_outside_the_write_transaction(sqlite_db: Database) -> None:
    put_run(sqlite_db)
    put_run(sqlite_db, "run-2")
    with sqlite_db.lock_run("run-1") as lock:
        assert lock is not None
        lock.run(), lock.inbox(10), lock.events(), lock.now()
        put_run(sqlite_db, "run-3")  # would wait for itself otherwise
        lock.connection()
        lock.commit()
        put_run(sqlite_db, "run-4")  # the writer's turn ends with the commit


# --- other processes ------------------------------------------------------------------------------


def test_a_busy_file_is_waited_for_and_never_read_as_taken(sqlite_url: str, sqlite_db: Database) -> None:
    put_run(sqlite_db)
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(1.5, lambda: other.execute("COMMIT")).start()  # longer than the busy time-out
    sqlite_db.run(lambda conn: runs.update(conn, "run-1", {"last_seq": 1}), what="test")
    assert get_run(sqlite_db).last_seq == 1
    other.close()


def test_a_file_that_stays_busy_is_unavailable(sqlite_url: str) -> None:
    db = Database.open(sqlite_url, retrying=Retrying(limit=0.1))
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked"):
        db.run(lambda conn: runs.insert(conn, a_run()), what="start")
    other.close()
    db.dispose()


def test_two_processes_append_to_one_history_without_gap_or_double(
    sqlite_url: str, sqlite_db: Database, tmp_path: Path
) -> None:
    put_run(sqlite_db)
    command = [sys.executable, "-m", "tests.conformance.store.append_events", sqlite_url, "20"]
    processes = [ManagedProcess(command, log_path=tmp_path / f"{number}.log") for number in range(2)]
    try:
        for process in processes:
            process.start()
        for process in processes:
            assert process.wait(60) == 0, process.logs()
    finally:
        for process in processes:
            process.close()
    with sqlite_db.read() as conn:
        assert [event.seq for event in history.read(conn, "run-1")] == list(range(1, 41))


def test_what_was_committed_survives_the_death_of_its_process(sqlite_url: str, sqlite_db: Database) -> None:
    child = os.fork()
    if child == 0:
        put_run(sqlite_db)
        with sqlite_db.write() as conn:
            runs.insert(conn, a_run("run-2"))
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert get_run(sqlite_db) == a_run()
    with sqlite_db.read() as conn:
        assert runs.get(conn, "run-2") is None
    put_run(sqlite_db, "run-3")  # and it left no lock behind


# --- memory ---------------------------------------------------------------------------------------


def test_a_database_in_memory_is_made_within_30_milliseconds() -> None:
    best = 1.0
    for _ in range(5):
        began = time.thread_time()  # what other processes take from the machine does not count
        db = Database.open("sqlite://")
        migrate.create(db)
        best = min(best, time.thread_time() - began)
        db.dispose()
    assert best < 0.030


def test_threads_share_a_database_in_memory(memory_db: Database) -> None:
    def write(number: int) -> None:
        put_run(memory_db, f"run-{number}")
        with memory_db.lock_run(f"run-{number}") as lock:
            assert lock is not None
            runs.update(lock.connection(), f"run-{number}", {"last_seq": number})
            lock.commit()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(100)))
    assert [get_run(memory_db, f"run-{number}").last_seq for number in (0, 99)] == [0, 99]


def test_in_memory_too_one_of_ten_gets_the_lock(memory_db: Database) -> None:
    put_run(memory_db)
    everybody = threading.Barrier(10)

    def decider(_: int) -> bool:
        everybody.wait(10)
        with memory_db.lock_run("run-1") as lock:
            everybody.wait(10)
            return lock is not None

    with ThreadPoolExecutor(10) as threads:
        assert sum(threads.map(decider, range(10))) == 1


def test_in_memory_a_thread_reads_what_it_is_writing(memory_db: Database) -> None:
    with pytest.raises(LookupError), memory_db.write() as conn:
        runs.insert(conn, a_run())
        with memory_db.read() as inner:
            assert runs.get(inner, "run-1") == a_run()
        raise LookupError
    with memory_db.read() as conn:
        assert runs.get(conn, "run-1") is None


def test_in_memory_a_write_inside_a_read_is_committed(memory_db: Database) -> None:
    with memory_db.read() as conn:
        assert runs.get(conn, "run-1") is None
        put_run(memory_db)
        assert runs.get(conn, "run-1") == a_run()
    assert get_run(memory_db) == a_run()


def test_in_memory_a_failing_write_inside_a_read_is_rolled_back(memory_db: Database) -> None:
    with memory_db.read() as conn:
        with pytest.raises(LookupError), memory_db.write() as inner:
            runs.insert(inner, a_run())
            raise LookupError
        assert runs.get(conn, "run-1") is None
    put_run(memory_db)


def test_in_memory_a_write_inside_a_write_is_refused(memory_db: Database) -> None:
    with memory_db.write(), pytest.raises(RuntimeError, match="use its connection"), memory_db.write():
        pass


def test_two_databases_in_memory_are_two(memory_db: Database) -> None:
    other = Database.open("sqlite:///:memory:")
    migrate.create(other)
    put_run(memory_db)
    with other.read() as conn:
        assert conn.scalar(text("SELECT count(*) FROM orchestrator_runs")) == 0
    other.dispose()
