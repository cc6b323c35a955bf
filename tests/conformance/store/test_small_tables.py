"""Signal keys, workers, the sweep's row, queues, namespaces and the outbox."""

from dataclasses import replace

from orchestrator.model.records import ActivityState, RunStatus, SignalKey
from orchestrator.store import activities, namespaces, outbox, queues, signals, sweeps, workers
from orchestrator.store.database import Database
from orchestrator.types import SECOND
from tests.conformance.store.builders import a_started_activity, a_worker, an_activity, put_run

# --- signals --------------------------------------------------------------------------------------


def test_a_signal_id_is_remembered_once_per_lineage(db: Database) -> None:
    accepted = SignalKey(lineage_id="l", signal_id="s", name="a", digest="d", run_id="run-1", at=1)
    with db.write() as conn:
        assert signals.insert_key(conn, accepted)
        assert not signals.insert_key(conn, replace(accepted, name="b"))
        assert signals.insert_key(conn, replace(accepted, lineage_id="m"))
        assert signals.key(conn, "l", "s") == accepted
        assert signals.key(conn, "l", "other") is None


def test_the_gates_key_is_a_signed_64_bit_number_that_never_changes() -> None:
    assert signals.gate_key("lineage") == 6170276764653257000
    assert signals.gate_key("other") != signals.gate_key("lineage")


# --- workers --------------------------------------------------------------------------------------


def test_a_worker_is_written_again_and_again_in_one_row(db: Database) -> None:
    with db.write() as conn:
        workers.upsert(conn, a_worker())
        workers.upsert(conn, a_worker(pids=((5, 6),), stopping=True))
        workers.upsert(conn, a_worker("worker-0"))
        assert [worker.worker_id for worker in workers.all(conn)] == ["worker-0", "worker-1"]
        assert workers.get(conn, "worker-1") == a_worker(pids=((5, 6),), stopping=True)
        assert workers.delete(conn, "worker-1")
        assert not workers.delete(conn, "worker-1")
        assert workers.get(conn, "worker-1") is None


def test_a_sign_of_life_is_dated_by_the_sweeps_clock(db: Database) -> None:
    db.run(lambda conn: sweeps.tick(conn, 10 * SECOND, SECOND), what="test")
    with db.write() as conn:
        workers.upsert(conn, a_worker(seen_clock=999))
        found = workers.get(conn, "worker-1")
        assert found is not None
        assert found.seen_clock == sweeps.clock(conn) == SECOND


# --- the sweep ------------------------------------------------------------------------------------


def tick(db: Database, now: int) -> sweeps.Tick | None:
    return db.run(lambda conn: sweeps.tick(conn, now, SECOND), what="test")


def test_a_tick_is_due_once_an_interval(db: Database) -> None:
    with db.read() as conn:
        assert sweeps.last_tick(conn) is None
    assert tick(db, 100 * SECOND) == sweeps.Tick(clock=SECOND, at=100 * SECOND, previous_at=None)
    assert tick(db, 100 * SECOND + SECOND // 2) is None
    second = tick(db, 101 * SECOND)
    assert second == sweeps.Tick(clock=2 * SECOND, at=101 * SECOND, previous_at=100 * SECOND)
    with db.read() as conn:
        assert sweeps.last_tick(conn) == 101 * SECOND
        assert sweeps.clock(conn) == 2 * SECOND


def test_a_tick_that_comes_a_little_early_is_not_refused(db: Database) -> None:
    tick(db, 100 * SECOND)
    assert tick(db, 100 * SECOND + SECOND * 9 // 10) is not None


def test_the_clock_stands_still_while_nobody_swept(db: Database) -> None:
    tick(db, 100 * SECOND)
    after_an_hour = tick(db, 3700 * SECOND)
    assert after_an_hour is not None
    assert after_an_hour.clock == 3 * SECOND  # two intervals at most for the hour that nobody could write


def test_a_database_clock_that_was_set_back_does_not_stop_the_sweep(db: Database) -> None:
    tick(db, 100 * SECOND)
    back = tick(db, 50 * SECOND)
    assert back is not None
    assert back.clock == SECOND
    assert tick(db, 51 * SECOND) is not None


def test_the_sweeps_row_is_made_where_it_is_missing(db: Database) -> None:
    db.run(lambda conn: conn.exec_driver_sql("DELETE FROM orchestrator_sweep"), what="test")
    with db.read() as conn:
        assert sweeps.clock(conn) == 0
    assert tick(db, 100 * SECOND) is not None


def test_a_tick_moves_the_index_entries_of_beating_attempts(db: Database) -> None:
    put_run(db)
    with db.write() as conn:
        activities.insert(conn, [a_started_activity(heartbeat_due_clock=SECOND)])
        activities.update(conn, "run-1", 1, {"heartbeat_due_clock": 9 * SECOND})
    tick(db, 100 * SECOND)
    with db.write() as conn:
        assert activities.move_heartbeat_checks(conn, SECOND, 10) == 0


# --- queues ---------------------------------------------------------------------------------------


def test_a_queues_progress_never_goes_back(db: Database) -> None:
    for instant in (10, 30, 20):
        with db.write() as conn:
            queues.note_progress(conn, "orders", instant)
    with db.read() as conn:
        assert queues.progress(conn, ["orders", "unknown"]) == {"orders": 30}
        assert queues.progress(conn, []) == {}


def test_what_waits_is_counted_by_queue(db: Database) -> None:
    put_run(db, "run-1", queue="orders", next_send_at=5, created_at=50)
    put_run(db, "run-2", queue="orders", status=RunStatus.RUNNING)
    with db.write() as conn:
        activities.insert(
            conn,
            [
                an_activity(number=1, queue="payments", attempt_scheduled_at=20),
                an_activity(number=2, queue="payments", attempt_scheduled_at=10),
                an_activity(number=3, queue="orders", attempt_scheduled_at=99),
                a_started_activity(number=4, queue="payments"),
                an_activity(number=5, queue="done", state=ActivityState.COMPLETED, closed_at=1),
            ],
        )
        assert queues.waiting(conn) == {
            "orders": queues.Waiting(queue="orders", activities=1, runs=1, oldest_at=50),
            "payments": queues.Waiting(queue="payments", activities=2, runs=0, oldest_at=10),
        }


# --- namespaces and the outbox --------------------------------------------------------------------


def test_a_namespace_is_noted_once(db: Database) -> None:
    with db.write() as conn:
        assert namespaces.note(conn, "b", 1)
        assert namespaces.note(conn, "a", 1)
        assert not namespaces.note(conn, "b", 2)
        assert namespaces.all(conn) == ["a", "b"]


def test_a_delivery_is_tried_until_it_is_deleted(db: Database) -> None:
    with db.write() as conn:
        row_id = outbox.insert(conn, "default", "signal", attrs={"to": "x"}, payload=b"p", now=1, next_send_at=5)
        assert outbox.due(conn, 4, 10) == []
        [row] = outbox.due(conn, 5, 10)
        assert (row.id, row.kind, row.attrs, row.payload, row.send_count) == (row_id, "signal", {"to": "x"}, b"p", 0)
        outbox.postpone(conn, row_id, 9)
        assert outbox.due(conn, 8, 10) == []
        assert outbox.due(conn, 9, 10)[0].send_count == 1
        assert outbox.delete(conn, [row_id]) == 1
        assert outbox.due(conn, 9, 10) == []
