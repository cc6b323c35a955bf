"""One writer per history (P1): the lock is had by one, at once or not at all, and is rolled back unless committed."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from orchestrator.model.records import InboxKind
from orchestrator.store import history, inbox, runs
from orchestrator.store.database import Database
from orchestrator.store.failures import TryAgain
from orchestrator.types import ManualClock
from tests.conformance.store.builders import append_one, get_run, put_run, timer_started


def test_a_taken_lock_is_not_waited_for(make_db: Callable[..., Database]) -> None:
    one, two = make_db(), make_db()
    put_run(one)
    with one.lock_run("run-1") as mine:
        assert mine is not None
        began = time.monotonic()
        with two.lock_run("run-1") as yours:
            assert yours is None
        assert time.monotonic() - began < 0.5
    with two.lock_run("run-1") as yours:
        assert yours is not None


def test_locks_of_different_runs_are_independent(make_db: Callable[..., Database]) -> None:
    one, two = make_db(), make_db()
    put_run(one, "run-1")
    put_run(one, "run-2")
    with one.lock_run("run-1") as mine, two.lock_run("run-2") as yours:
        assert mine is not None
        assert yours is not None


def test_there_is_no_lock_of_a_run_that_does_not_exist(db: Database) -> None:
    with db.lock_run("nobody") as lock:
        assert lock is None


def test_of_ten_deciders_that_are_woken_at_once_one_gets_the_lock(make_db: Callable[..., Database]) -> None:
    db = make_db(pool_size=10)
    put_run(db)
    everybody = threading.Barrier(10)

    def decider(_: int) -> bool:
        everybody.wait(10)
        with db.lock_run("run-1") as lock:
            everybody.wait(10)  # nobody leaves before all have tried
            return lock is not None

    with ThreadPoolExecutor(10) as threads:
        for _ in range(50):
            assert sum(threads.map(decider, range(10))) == 1


def test_what_is_committed_under_the_lock_is_kept(db: Database) -> None:
    put_run(db)
    with db.lock_run("run-1") as lock:
        assert lock is not None
        assert lock.run() == get_run(db)
        history.append(lock.connection(), "run-1", [timer_started(1)])
        runs.update(lock.connection(), "run-1", {"last_seq": 1, "decision_token": "token-1"})
        lock.commit()
    assert get_run(db).last_seq == 1
    with db.lock_run("run-1") as lock:
        assert lock is not None
        assert [event.seq for event in lock.events()] == [1]
        assert lock.events(after=1) == []


def test_what_is_not_committed_is_rolled_back(db: Database) -> None:
    put_run(db)
    with db.lock_run("run-1") as lock:
        assert lock is not None
        runs.update(lock.connection(), "run-1", {"last_seq": 1})
    with pytest.raises(RuntimeError, match="workflow code"), db.lock_run("run-1") as lock:
        assert lock is not None
        runs.update(lock.connection(), "run-1", {"last_seq": 2})
        raise RuntimeError("workflow code fails")
    assert get_run(db).last_seq == 0


def test_a_commit_without_any_write_gives_the_lock_back(db: Database) -> None:
    put_run(db)
    with db.lock_run("run-1") as lock:
        assert lock is not None
        lock.commit()
    with db.lock_run("run-1") as lock:
        assert lock is not None


def test_a_lock_that_was_given_back_can_not_be_used_again(db: Database) -> None:
    put_run(db)
    with db.lock_run("run-1") as lock:
        assert lock is not None
        lock.commit()
        for use in (lock.run, lock.connection, lock.commit, lock.now):
            with pytest.raises(RuntimeError, match="given back"):
                use()


def test_a_holder_sees_what_was_sent_after_it_took_the_lock(make_db: Callable[..., Database]) -> None:
    db, sender = make_db(), make_db()
    put_run(db)
    with db.lock_run("run-1") as lock:
        assert lock is not None
        assert lock.inbox(10) == []
        ids = [
            sender.run(lambda c: inbox.insert(c, "run-1", InboxKind.SIGNAL, now=1, next_send_at=2), what="test")
            for _ in range(3)
        ]
        assert [row.id for row in lock.inbox(10)] == ids
        assert [row.id for row in lock.inbox(10, exclude=ids[:1])] == ids[1:]
        lock.enter_gate("run-1")
        assert [row.id for row in lock.inbox(2)] == ids[:2]
        assert inbox.delete(lock.connection(), ids) == 3
        lock.commit()
    with db.read() as conn:
        assert not inbox.exists(conn, "run-1")


def test_a_sender_never_waits_for_a_decision(make_db: Callable[..., Database]) -> None:
    db, sender = make_db(), make_db()
    put_run(db)
    with db.lock_run("run-1") as lock:
        assert lock is not None
        lock.run()
        began = time.monotonic()
        sender.run(lambda conn: inbox.insert(conn, "run-1", InboxKind.SIGNAL, now=1, next_send_at=2), what="test")
        assert time.monotonic() - began < 0.5


def test_the_locks_clock_is_the_databases(make_db: Callable[..., Database]) -> None:
    clock = ManualClock(77)
    db = make_db(clock=clock)
    put_run(db)
    with db.lock_run("run-1") as lock:
        assert lock is not None
        assert lock.now() == 77
        clock.advance_to(78)
        assert lock.now() == 78


def test_a_history_that_many_write_has_no_gap_and_no_double(make_db: Callable[..., Database]) -> None:
    pools = [make_db() for _ in range(4)]
    put_run(pools[0])

    def write(writer: int) -> None:
        left = 10
        while left:
            left -= append_one(pools[writer], str(writer))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert get_run(pools[0]).last_seq == 40


def drain(db: Database) -> None:
    """Takes what the inbox holds into the history, as a decision does."""
    with suppress(TryAgain), db.lock_run("run-1") as lock:
        if lock is None:
            return
        run, rows = lock.run(), lock.inbox(20)
        if not rows:
            return
        taken = [timer_started(run.last_seq + place, number=row.id) for place, row in enumerate(rows, start=1)]
        history.append(lock.connection(), "run-1", taken)
        assert inbox.delete(lock.connection(), [row.id for row in rows]) == len(rows)
        runs.update(lock.connection(), "run-1", {"last_seq": taken[-1].seq, "decision_token": f"t{taken[-1].seq}"})
        lock.commit()


def test_what_many_send_while_many_decide_is_taken_exactly_once(make_db: Callable[..., Database]) -> None:
    pools = [make_db() for _ in range(4)]
    put_run(pools[0])
    sending = threading.Event()
    sending.set()

    def send(db: Database) -> list[int]:
        return [
            db.run(lambda c: inbox.insert(c, "run-1", InboxKind.SIGNAL, now=1, next_send_at=2), what="test")
            for _ in range(60)
        ]

    def decide(db: Database) -> None:
        while sending.is_set():
            drain(db)

    with ThreadPoolExecutor(4) as threads:
        deciders = [threads.submit(decide, pools[number]) for number in (0, 1)]
        sent = [row_id for found in threads.map(send, pools[2:]) for row_id in found]
        sending.clear()
        for decider in deciders:
            decider.result(30)
    while (left := get_run(pools[0]).last_seq) < len(sent):
        drain(pools[0])
        assert get_run(pools[0]).last_seq > left
    with pools[0].read() as conn:
        taken = [event.body.number for event in history.read(conn, "run-1")]  # type: ignore[attr-defined]
    assert sorted(taken) == sorted(sent)
