"""What only PostgreSQL does: its server frees locks, guards the gate, and breaks transactions off."""

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError

from orchestrator.model.records import InboxKind
from orchestrator.store import activities, engines, inbox, runs, signals
from orchestrator.store.database import Connection, Database
from orchestrator.store.failures import CommitUnknown, GateBusy, Interrupted, TryAgain
from orchestrator.store.retrying import Retrying
from tests.conformance.store.builders import a_run, an_activity, get_run, put_run
from tests.support.processes import ManagedProcess
from tests.support.waiting import wait_until


def pid_of(conn: Connection) -> int:
    return int(conn.execute(text("SELECT pg_backend_pid()")).scalar_one())


def kill_backend(db: Database, pid: int) -> None:
    with db.engine.connect() as conn:
        assert conn.scalar(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})


def is_locked(db: Database, run_id: str = "run-1") -> bool:
    with db.lock_run(run_id) as lock:
        return lock is None


# --- locks and lost connections -------------------------------------------------------------------


def test_killing_the_holders_connection_frees_the_lock(postgres_db: Database) -> None:
    put_run(postgres_db)
    with pytest.raises(TryAgain), postgres_db.lock_run("run-1") as lock:
        assert lock is not None
        runs.update(lock.connection(), "run-1", {"last_seq": 5})
        kill_backend(postgres_db, pid_of(lock.connection()))
        assert not is_locked(postgres_db)
        lock.run()
    assert get_run(postgres_db).last_seq == 0


def test_a_read_under_a_lost_lock_is_told_on_the_spot_and_so_is_the_next(postgres_db: Database) -> None:
    put_run(postgres_db)
    with pytest.raises(TryAgain), postgres_db.lock_run("run-1") as lock:
        assert lock is not None
        kill_backend(postgres_db, pid_of(lock.connection()))
        for read in (lock.run, lock.events, lock.now, lambda: lock.inbox(1), lambda: lock.enter_gate("run-1")):
            with pytest.raises(Interrupted):
                read()
        runs.update(lock.connection(), "run-1", {"last_seq": 1})


def test_going_on_after_an_aborted_statement_is_worth_another_try(postgres_db: Database) -> None:
    put_run(postgres_db)
    with pytest.raises(TryAgain), postgres_db.lock_run("run-1") as lock:
        assert lock is not None
        with pytest.raises(DBAPIError):
            lock.connection().execute(text("SELECT 1 / 0"))
        lock.run()


@pytest.mark.slow
def test_a_holder_that_was_stopped_loses_the_lock(postgres_url: str, postgres_db: Database, tmp_path: Path) -> None:
    put_run(postgres_db)
    command = [sys.executable, "-m", "tests.conformance.store.hold_a_lock", postgres_url]
    process = ManagedProcess(command, log_path=tmp_path / "holder.log")
    process.start()
    try:
        wait_until(lambda: "locked" in process.logs(), message=process.logs)
        process.freeze()
        assert is_locked(postgres_db)
        wait_until(lambda: not is_locked(postgres_db), timeout=15, interval=0.2)
    finally:
        process.resume()
        process.close()


def test_a_transaction_whose_connection_is_lost_is_done_again(postgres_db: Database) -> None:
    calls = []

    def work(conn: Connection) -> None:
        runs.insert(conn, a_run())
        calls.append(1)
        if len(calls) == 1:
            kill_backend(postgres_db, pid_of(conn))
            pid_of(conn)

    postgres_db.run(work, what="test")
    assert len(calls) == 2
    assert get_run(postgres_db) == a_run()


@contextmanager
def first_commit_lost(db: Database) -> Iterator[list[int]]:
    """Kills the connection right before its first COMMIT is sent, so the answer never comes."""
    lost: list[int] = []

    def kill(conn: Connection) -> None:
        if not lost:
            lost.append(pid_of(conn))
            kill_backend(db, lost[0])

    event.listen(db.engine, "commit", kill)
    try:
        yield lost
    finally:
        event.remove(db.engine, "commit", kill)


def test_a_commit_whose_answer_was_lost_is_done_again_only_when_that_is_harmless(postgres_db: Database) -> None:
    calls = []

    def work(conn: Connection) -> None:
        calls.append(runs.insert(conn, a_run()))

    with first_commit_lost(postgres_db), pytest.raises(CommitUnknown, match="not known whether"):
        postgres_db.run(work, what="test", idempotent=False)
    assert len(calls) == 1
    with first_commit_lost(postgres_db):
        postgres_db.run(work, what="test")
    assert len(calls) == 3
    assert get_run(postgres_db) == a_run()


def test_a_decisions_lost_commit_is_told_so_that_its_token_can_be_looked_up(postgres_db: Database) -> None:
    put_run(postgres_db)
    with first_commit_lost(postgres_db), pytest.raises(CommitUnknown), postgres_db.lock_run("run-1") as lock:
        assert lock is not None
        runs.update(lock.connection(), "run-1", {"decision_token": "mine"})
        lock.commit()
    assert get_run(postgres_db).decision_token == "token-0"


def test_a_deadlock_is_done_again(postgres_db: Database) -> None:
    put_run(postgres_db)
    postgres_db.run(lambda conn: activities.insert(conn, [an_activity(number=1), an_activity(number=2)]), what="test")
    both_hold_one = threading.Barrier(2)
    tries: list[int] = []

    def lock_both(first: int, second: int) -> None:
        def work(conn: Connection) -> None:
            tries.append(first)
            activities.lock(conn, "run-1", first)
            if tries.count(first) == 1:
                both_hold_one.wait(10)
            activities.lock(conn, "run-1", second)

        postgres_db.run(work, what="test")

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lock_both, [1, 2], [2, 1]))
    assert len(tries) == 3


def test_a_pooled_connection_that_died_while_idle_is_replaced(
    postgres_url: str, postgres_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_IDLE_SECONDS", 0.0)
    db = Database.open(postgres_url, pool_size=1)
    with db.read() as conn:
        pid = pid_of(conn)
    kill_backend(postgres_db, pid)
    with db.read() as conn:
        assert pid_of(conn) != pid
    db.dispose()


def test_a_pool_without_a_free_connection_is_unavailable_not_a_stack_trace(postgres_url: str) -> None:
    db = Database.open(postgres_url, pool_size=1, retrying=Retrying(limit=0.0))
    db.engine.pool._timeout = 0.05  # type: ignore[attr-defined]
    with db.read(), db.read(), pytest.raises(Interrupted, match="orchestrator_pool_size"), db.read():
        pass
    db.dispose()


# --- session settings -----------------------------------------------------------------------------


def test_sessions_have_the_time_outs_that_free_locks(postgres_url: str) -> None:
    db = Database.open(postgres_url, decision_timeout_us=2_000_000, application_name="shop")
    with db.read() as conn:
        assert engines.session_settings(conn) == {
            "idle_in_transaction_session_timeout": "5s",
            "lock_timeout": "5s",
            "statement_timeout": "30s",
            "client_connection_check_interval": "1s",
            "transaction_isolation": "read committed",
        }
        assert conn.scalar(text("SHOW application_name")) == "shop"
    db.dispose()


def test_a_server_that_lacks_a_setting_is_given_the_others(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "SETTINGS", (*engines.SETTINGS[:-1], "no_such_setting"))
    db = Database.open(postgres_url)
    with db.read() as conn:
        assert engines.session_settings(conn)["lock_timeout"] == "5s"
    db.dispose()


def test_read_committed_is_set_whatever_the_role_or_database_says(postgres_url: str) -> None:
    db = Database.open(postgres_url + "?options=-c%20default_transaction_isolation%3Dserializable")
    with db.read() as conn:
        assert conn.scalar(text("SHOW default_transaction_isolation")) == "serializable"
        assert conn.scalar(text("SHOW transaction_isolation")) == "read committed"
    db.dispose()


# --- the gate -------------------------------------------------------------------------------------


def test_the_gate_is_waited_for_until_the_senders_inside_have_committed(postgres_db: Database) -> None:
    put_run(postgres_db)
    inside = threading.Event()
    leave = threading.Event()

    def sender() -> None:
        with postgres_db.write() as conn:
            signals.enter_gate_shared(conn, "run-1")
            inbox.insert(conn, "run-1", InboxKind.SIGNAL, now=1, next_send_at=2)
            inside.set()
            leave.wait(10)

    with ThreadPoolExecutor(1) as threads, postgres_db.lock_run("run-1") as lock:
        assert lock is not None
        sent = threads.submit(sender)
        assert inside.wait(10)
        assert lock.inbox(10) == []
        threading.Timer(0.1, leave.set).start()
        lock.enter_gate("run-1")
        assert len(lock.inbox(10)) == 1  # what the gate protects is read by a later statement
        assert lock.connection().scalar(text("SHOW lock_timeout")) == "5s"
        sent.result(10)


def test_a_gate_that_stays_busy_is_given_up_together_with_the_lock(postgres_db: Database) -> None:
    put_run(postgres_db)
    with postgres_db.write() as sender:
        signals.enter_gate_shared(sender, "run-1")
        began = time.monotonic()
        with pytest.raises(GateBusy), postgres_db.lock_run("run-1") as lock:
            assert lock is not None
            lock.enter_gate("run-1")
        assert 0.3 < time.monotonic() - began < 3
        assert not is_locked(postgres_db)


def test_senders_enter_the_gate_together_and_not_while_it_is_shut(postgres_db: Database) -> None:
    put_run(postgres_db)
    with postgres_db.write() as one, postgres_db.write() as two:
        signals.enter_gate_shared(one, "run-1")
        signals.enter_gate_shared(two, "run-1")
    with postgres_db.lock_run("run-1") as lock, ThreadPoolExecutor(1) as threads:
        assert lock is not None
        lock.enter_gate("run-1")
        late = threads.submit(postgres_db.run, lambda conn: signals.enter_gate_shared(conn, "run-1"), what="test")
        with postgres_db.write() as other:
            signals.enter_gate_shared(other, "another-lineage")
        assert not late.done()
        lock.commit()
        late.result(10)


# --- the sweep's questions ------------------------------------------------------------------------


def test_rows_that_another_sweep_or_a_decision_holds_are_passed_over(postgres_db: Database) -> None:
    for number in (1, 2):
        put_run(postgres_db, f"run-{number}", next_send_at=number)
    postgres_db.run(lambda conn: activities.insert(conn, [an_activity(next_send_at=1)]), what="test")
    with postgres_db.write() as first, postgres_db.write() as second:
        assert [run.run_id for run in runs.due(first, 10, 1)] == ["run-1"]
        assert [run.run_id for run in runs.due(second, 10, 10)] == ["run-2"]
        assert len(activities.due_to_send(first, 10, 10)) == 1
        assert activities.due_to_send(second, 10, 10) == []
    with postgres_db.lock_run("run-1") as lock, postgres_db.write() as conn:
        assert lock is not None
        assert [run.run_id for run in runs.due(conn, 10, 10)] == ["run-2"]


def test_a_decision_that_drains_is_not_waited_for_by_the_sweep(postgres_db: Database) -> None:
    put_run(postgres_db)
    row_id = postgres_db.run(
        lambda conn: inbox.insert(conn, "run-1", InboxKind.SIGNAL, now=1, next_send_at=2), what="test"
    )
    with postgres_db.write() as decision, postgres_db.write() as sweep:
        inbox.delete(decision, [row_id])
        assert [item.run_id for item in inbox.due(sweep, 10, 10)] == ["run-1"]
        assert inbox.postpone(sweep, "run-1", now=10, next_send_at=20) == 0
