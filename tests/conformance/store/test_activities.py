"""Activities: claimed by a conditional update, and found by each question of the sweep."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.model.records import ActivityRecord, ActivityState
from orchestrator.store import activities
from orchestrator.store.database import Database
from tests.conformance.store.builders import a_started_activity, an_activity, put_run


@pytest.fixture(autouse=True)
def run(db: Database) -> None:
    put_run(db)


def put(db: Database, *records: ActivityRecord) -> None:
    db.run(lambda conn: activities.insert(conn, records), what="test")


def get(db: Database, number: int = 1) -> ActivityRecord:
    with db.read() as conn:
        found = activities.get(conn, "run-1", number)
    assert found is not None
    return found


def test_an_activity_comes_back_as_it_was_inserted(db: Database) -> None:
    activity = a_started_activity(
        nonce="n",
        retries=2,
        pid=12,
        pid_started=2**40,
        claim_clock=5,
        heartbeat_due_clock=9,
        heartbeat_details=b"d",
        cancel_requested=True,
        last_failure=b"f",
        deadline_at=77,
        options={"retry": {"coefficient": 2.0, "attempts": None}, "celery": {"x": ["ü", True]}},
    )
    put(db, activity)
    assert get(db) == activity


def test_an_attempt_is_claimed_by_one_of_two(db: Database) -> None:
    put(db, an_activity(next_send_at=5))
    waiting = {"state": ActivityState.SCHEDULED, "attempt": 1, "token": None}
    claim = {"state": ActivityState.STARTED, "token": "mine", "next_send_at": None, "started_at": 2}
    with db.write() as conn:
        assert activities.update(conn, "run-1", 1, claim, expect=waiting)
        assert not activities.update(conn, "run-1", 1, {**claim, "token": "yours"}, expect=waiting)
        locked = activities.lock(conn, "run-1", 1)
    assert locked is not None
    assert locked.token == "mine"


def test_activities_of_a_run_are_listed_by_number(db: Database) -> None:
    put(db, an_activity(number=2), an_activity(number=1, state=ActivityState.COMPLETED, closed_at=3))
    with db.read() as conn:
        assert [found.number for found in activities.of_run(conn, "run-1")] == [1, 2]
        assert [found.number for found in activities.open_of_run(conn, "run-1")] == [2]
        assert activities.get(conn, "run-1", 3) is None
        assert activities.get(conn, "other", 1) is None


def test_closing_a_run_cancels_what_is_open_and_nothing_else(db: Database) -> None:
    done = an_activity(number=3, state=ActivityState.COMPLETED, closed_at=3)
    put(db, an_activity(number=1, next_send_at=5, deadline_at=6), a_started_activity(number=2), done)
    with db.write() as conn:
        assert activities.close_all(conn, "run-1", now=9) == 2
        assert activities.due_to_send(conn, 100, 10) == []
        assert activities.past_deadline(conn, 100, 10) == []
    assert [(get(db, n).state, get(db, n).closed_at, get(db, n).token) for n in (1, 2)] == [
        (ActivityState.CANCELED, 9, None)
    ] * 2
    assert get(db, 3) == done


def numbers(found: list[ActivityRecord]) -> list[int]:
    return [record.number for record in found]


def test_scheduled_attempts_are_sent_when_they_are_due(db: Database) -> None:
    put(
        db,
        an_activity(number=1, next_send_at=20, input=b"x" * 100),
        an_activity(number=2, next_send_at=10),
        an_activity(number=3, next_send_at=99),
        a_started_activity(number=4, next_send_at=1),
    )
    with db.write() as conn:
        found = activities.due_to_send(conn, 50, 10)
        assert numbers(found) == [2, 1]
        assert found[1].input == b""  # inputs may be megabytes, and the message does not carry them
        assert numbers(activities.due_to_send(conn, 50, 1)) == [2]


def test_open_attempts_past_their_deadline_are_found(db: Database) -> None:
    put(
        db,
        an_activity(number=1, deadline_at=20),
        a_started_activity(number=2, deadline_at=10),
        an_activity(number=3, deadline_at=99),
        an_activity(number=4),
        an_activity(number=5, deadline_at=1, state=ActivityState.FAILED, closed_at=3),
    )
    with db.read() as conn:
        assert numbers(activities.past_deadline(conn, 50, 10)) == [2, 1]


def test_the_next_due_time_is_the_earliest_send_or_deadline(db: Database) -> None:
    with db.read() as conn:
        assert activities.next_due(conn) is None
    put(db, an_activity(number=1, next_send_at=20, deadline_at=30), a_started_activity(number=2, deadline_at=25))
    with db.read() as conn:
        assert activities.next_due(conn) == 20


def overdue(db: Database, clock: int) -> list[int]:
    with db.read() as conn:
        return numbers(activities.heartbeat_overdue(conn, clock, 10))


def test_a_heartbeat_is_overdue_on_the_sweeps_clock_only_when_none_came(db: Database) -> None:
    put(db, an_activity())
    claim: dict[str, Any] = {"state": ActivityState.STARTED, "token": "t", "heartbeat_due_clock": 10}
    db.run(lambda conn: activities.update(conn, "run-1", 1, claim), what="test")
    assert overdue(db, 9) == []
    assert overdue(db, 10) == [1]
    db.run(lambda conn: activities.update(conn, "run-1", 1, {"heartbeat_due_clock": 20}), what="test")
    assert overdue(db, 15) == []
    assert overdue(db, 20) == [1]


def test_a_beating_attempts_index_entry_is_moved_when_it_comes_due(db: Database) -> None:
    put(db, a_started_activity(number=1, heartbeat_due_clock=10), a_started_activity(number=2, heartbeat_due_clock=10))
    with db.write() as conn:
        activities.update(conn, "run-1", 1, {"heartbeat_due_clock": 30})
        assert activities.move_heartbeat_checks(conn, 9, 10) == 0
        assert activities.move_heartbeat_checks(conn, 10, 10) == 1
        assert activities.move_heartbeat_checks(conn, 10, 10) == 0
    assert overdue(db, 29) == [2]
    assert overdue(db, 30) == [2, 1]


def test_the_next_heartbeat_check_is_the_earliest_of_started_attempts(db: Database) -> None:
    with db.read() as conn:
        assert activities.next_heartbeat_check(conn) is None
    put(db, a_started_activity(number=1, heartbeat_due_clock=10), a_started_activity(number=2, heartbeat_due_clock=7))
    with db.read() as conn:
        assert activities.next_heartbeat_check(conn) == 7


def test_a_new_attempt_is_checked_anew(db: Database) -> None:
    put(db, a_started_activity(heartbeat_due_clock=10))
    retry = {"state": ActivityState.SCHEDULED, "token": None, "heartbeat_due_clock": None}
    claim = {"state": ActivityState.STARTED, "token": "t", "heartbeat_due_clock": 50}
    with db.write() as conn:
        activities.update(conn, "run-1", 1, retry)
        activities.update(conn, "run-1", 1, claim)
        assert activities.move_heartbeat_checks(conn, 40, 10) == 0  # the old entry is gone
    assert overdue(db, 50) == [1]


def test_attempts_of_a_worker_are_found_by_the_processes_that_are_gone(db: Database) -> None:
    put(
        db,
        a_started_activity(number=1, pid=11, pid_started=100, claim_clock=5),
        a_started_activity(number=2, pid=12, pid_started=100, claim_clock=5),
        a_started_activity(number=3, pid=11, pid_started=999, claim_clock=5),  # the pid was given to another
        a_started_activity(number=4, pid=None, claim_clock=5),
        a_started_activity(number=5, pid=13, claim_clock=50),
        a_started_activity(number=6, worker_id="worker-2", pid=13),
        an_activity(number=7, worker_id="worker-1", pid=13),
    )

    def found(**filters: Any) -> list[int]:
        with db.read() as conn:
            return numbers(activities.started_by(conn, "worker-1", limit=10, **filters))

    assert found() == [1, 2, 3, 4, 5]
    assert found(not_pids=[(11, 100), (14, 1)]) == [2, 3, 4, 5]
    assert found(not_pids=[(13, 7)]) == [1, 2, 3, 4]  # claimed without a start time: the pid decides
    assert found(not_pids=[]) == [1, 2, 3, 4, 5]
    assert found(claimed_before_clock=50) == [1, 2, 3, 4]


def test_attempts_of_workers_that_nobody_knows_are_found(db: Database) -> None:
    put(
        db,
        a_started_activity(number=1, worker_id="worker-1"),
        a_started_activity(number=2, worker_id="worker-3"),
        a_started_activity(number=3, worker_id="worker-2"),
        a_started_activity(number=4, worker_id="worker-3"),
        an_activity(number=5, worker_id="worker-4"),
        a_started_activity(number=6, worker_id=None),
    )

    def found(known: list[str], limit: int = 10) -> list[int]:
        with db.read() as conn:
            return numbers(activities.started_by_unknown(conn, known, limit))

    assert found([]) == [1, 3, 2, 4]
    assert found(["worker-2", "worker-9"]) == [1, 2, 4]
    assert found(["worker-2"], limit=2) == [1, 2]
    assert found(["worker-1", "worker-2", "worker-3"]) == []


def test_an_update_leaves_what_it_does_not_name(db: Database) -> None:
    activity = an_activity(next_send_at=5, last_failure=b"f")
    put(db, activity)
    with db.write() as conn:
        activities.update(conn, "run-1", 1, {"next_send_at": 9, "options": {"a": 1}})
    assert get(db) == replace(activity, next_send_at=9, options={"a": 1})
