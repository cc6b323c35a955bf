"""Inboxes keep their order, are drained by exactly what was read, and are sent again when nobody drains them."""

from typing import Any

from orchestrator.model.records import InboxKind
from orchestrator.store import inbox
from orchestrator.store.database import Database
from tests.conformance.store.builders import put_run


def put(db: Database, run_id: str = "run-1", kind: InboxKind = InboxKind.SIGNAL, **facts: Any) -> int:
    values = {"now": 1_000, "next_send_at": 31_000, **facts}
    return db.run(lambda conn: inbox.insert(conn, run_id, kind, **values), what="test")


def test_rows_come_back_as_they_were_in_the_order_of_their_ids(db: Database) -> None:
    first = put(db, attrs={"name": "a \ud800\x00"}, payload=b"\x00\xff")
    second = put(db, kind=InboxKind.TIMER, number=2**53, now=5)
    put(db, "other")
    with db.read() as conn:
        rows = inbox.read(conn, "run-1", 10)
    assert [row.id for row in rows] == [first, second]
    assert (rows[0].kind, rows[0].attrs, rows[0].payload) == (InboxKind.SIGNAL, {"name": "a \ud800\x00"}, b"\x00\xff")
    assert (rows[1].kind, rows[1].number, rows[1].created_at) == (InboxKind.TIMER, 2**53, 5)


def test_an_inbox_takes_rows_for_a_run_that_nobody_knows(db: Database) -> None:
    put(db, "nobody")  # no foreign key: senders never touch a run's row


def test_ids_are_never_used_again(db: Database) -> None:
    last = [put(db) for _ in range(3)][-1]
    with db.write() as conn:
        inbox.delete_all(conn, "run-1")
    assert put(db) > last


def test_reading_is_bounded_and_leaves_out_what_is_excluded(db: Database) -> None:
    ids = [put(db) for _ in range(5)]
    with db.read() as conn:
        assert [row.id for row in inbox.read(conn, "run-1", 2)] == ids[:2]
        assert [row.id for row in inbox.read(conn, "run-1", 2, exclude={ids[0], ids[2]})] == [ids[1], ids[3]]


def test_deleting_says_how_many_there_were(db: Database) -> None:
    ids = [put(db) for _ in range(3)]
    with db.write() as conn:
        assert inbox.delete(conn, ids[:2]) == 2
        assert inbox.delete(conn, ids) == 1
        assert inbox.delete(conn, []) == 0


def test_thousands_of_rows_are_deleted_at_once(db: Database) -> None:
    with db.write() as conn:
        ids = [inbox.insert(conn, "run-1", InboxKind.TIMER, now=1, next_send_at=2) for _ in range(1200)]
        assert inbox.delete(conn, ids) == 1200


def test_an_older_undrained_row_is_seen_while_it_is_young(db: Database) -> None:
    old = put(db, now=1_000)
    new = put(db, now=2_000)
    with db.read() as conn:
        assert inbox.has_older(conn, "run-1", new, created_after=1_000)
        assert not inbox.has_older(conn, "run-1", new, created_after=1_001)
        assert not inbox.has_older(conn, "run-1", old, created_after=0)
        assert not inbox.has_older(conn, "other", new, created_after=0)


def test_counting_stops_at_its_bound(db: Database) -> None:
    for _ in range(5):
        put(db)
    with db.read() as conn:
        assert inbox.count(conn, "run-1", 100) == 5
        assert inbox.count(conn, "run-1", 3) == 3
        assert inbox.count(conn, "other", 3) == 0
        assert inbox.exists(conn, "run-1")
        assert not inbox.exists(conn, "other")


def test_runs_with_due_rows_are_found_once_each(db: Database) -> None:
    put_run(db, "run-1", queue="orders")
    put_run(db, "run-2", queue="slow")
    put(db, "run-1", now=1, next_send_at=10)
    put(db, "run-1", now=2, next_send_at=12)
    put(db, "run-1", now=3, next_send_at=99)
    put(db, "run-2", now=4, next_send_at=11)
    with db.write() as conn:
        due = inbox.due(conn, 50, 10)
    assert [(item.run_id, item.run.queue, item.created_at, item.published_at) for item in due] == [
        ("run-1", "orders", 1, 2),
        ("run-2", "slow", 4, 4),
    ]


def test_a_postponed_inbox_is_due_later_and_counts_its_wake_ups(db: Database) -> None:
    put_run(db)
    put(db, now=1, next_send_at=10)
    put(db, now=2, next_send_at=99)
    with db.write() as conn:
        assert inbox.postpone(conn, "run-1", now=20, next_send_at=80) == 1
        assert inbox.due(conn, 50, 10) == []
        [item] = inbox.due(conn, 85, 10)
        assert (item.send_count, item.published_at) == (1, 20)
        assert inbox.next_due(conn) == 80


def test_rows_of_a_run_that_was_deleted_do_not_stay_due_for_ever(db: Database) -> None:
    put(db, "nobody", next_send_at=1)
    with db.write() as conn:
        assert inbox.due(conn, 50, 10) == []
        assert not inbox.exists(conn, "nobody")
