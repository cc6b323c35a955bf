"""What must never be true can't be stored, whoever tries."""

from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from orchestrator.model.records import ActivityState, RunStatus
from orchestrator.store import activities, history, runs, schema, timers
from orchestrator.store.database import Database
from tests.conformance.store.builders import a_run, a_started_activity, an_activity, put_run, timer_started

WRONG_RUNS: list[dict[str, Any]] = [
    {"status": RunStatus.COMPLETED},  # closed without a closing time
    {"closed_at": 5},  # open with one
    {"status": RunStatus.FAILED, "closed_at": 5, "next_send_at": 6},  # closed, yet asking the sweep
    {"last_seq": -1},
    {"workflow_id": None},
    {"decision_token": None},
]


@pytest.mark.parametrize("wrong", WRONG_RUNS, ids=str)
def test_a_run_in_an_impossible_state_is_refused(db: Database, wrong: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError), db.write() as conn:
        conn.execute(schema.runs.insert(), {**_columns(a_run()), **wrong})


@pytest.mark.parametrize("column", ["status", "attention"])
def test_a_run_in_an_unknown_state_is_refused(db: Database, column: str) -> None:
    put_run(db)
    with pytest.raises(IntegrityError), db.write() as conn:
        conn.exec_driver_sql(f"UPDATE orchestrator_runs SET {column} = 'SOMETHING'")


def test_a_second_open_run_of_a_workflow_id_is_refused(db: Database) -> None:
    put_run(db, "one", workflow_id="order")
    with pytest.raises(IntegrityError), db.write() as conn:
        conn.execute(schema.runs.insert(), _columns(a_run("two", workflow_id="order")))


def test_a_closed_run_is_not_opened_again_beside_an_open_one(db: Database) -> None:
    put_run(db, "one", workflow_id="order", status=RunStatus.COMPLETED, closed_at=2)
    put_run(db, "two", workflow_id="order")
    with pytest.raises(IntegrityError), db.write() as conn:
        runs.update(conn, "one", {"status": RunStatus.RUNNING, "closed_at": None})


def test_an_event_number_is_used_once(db: Database) -> None:
    put_run(db)
    db.run(lambda conn: history.append(conn, "run-1", [timer_started(1)]), what="test")
    with pytest.raises(IntegrityError), db.write() as conn:
        history.append(conn, "run-1", [timer_started(2), timer_started(1)])
    with db.read() as conn:
        assert [event.seq for event in history.read(conn, "run-1")] == [1]


def test_events_count_from_one(db: Database) -> None:
    put_run(db)
    with pytest.raises(IntegrityError), db.write() as conn:
        history.append(conn, "run-1", [timer_started(0, number=1)])


def test_an_activity_number_is_used_once(db: Database) -> None:
    put_run(db)
    db.run(lambda conn: activities.insert(conn, [an_activity()]), what="test")
    with pytest.raises(IntegrityError), db.write() as conn:
        activities.insert(conn, [an_activity()])


WRONG_ACTIVITIES = [
    an_activity(token="token"),  # nobody may hold a token of an attempt that is not started
    an_activity(state=ActivityState.STARTED, started_at=2),  # started, and nobody holds it
    an_activity(state=ActivityState.COMPLETED),  # closed without a closing time
    an_activity(closed_at=5),  # open with one
    an_activity(state=ActivityState.FAILED, closed_at=5, token="token"),
    an_activity(number=0),
    an_activity(attempt=0),
]


@pytest.mark.parametrize("wrong", WRONG_ACTIVITIES)
def test_an_activity_in_an_impossible_state_is_refused(db: Database, wrong: Any) -> None:
    put_run(db)
    with pytest.raises(IntegrityError), db.write() as conn:
        activities.insert(conn, [wrong])


def test_a_timer_number_is_used_once(db: Database) -> None:
    put_run(db)
    with pytest.raises(IntegrityError), db.write() as conn:
        timers.insert(conn, [("run-1", 1, 5), ("run-1", 1, 6)])


def test_history_activities_and_timers_belong_to_a_run(db: Database) -> None:
    with pytest.raises(IntegrityError), db.write() as conn:
        history.append(conn, "nobody", [timer_started(1)])
    with pytest.raises(IntegrityError), db.write() as conn:
        activities.insert(conn, [a_started_activity("nobody")])
    with pytest.raises(IntegrityError), db.write() as conn:
        timers.insert(conn, [("nobody", 1, 5)])


def test_the_sweep_has_one_row(db: Database) -> None:
    with pytest.raises(IntegrityError), db.write() as conn:
        conn.execute(schema.sweep.insert(), {"id": 2, "clock_us": 0})


def _columns(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}
