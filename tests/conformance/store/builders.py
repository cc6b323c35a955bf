"""Rows for the store's tests: every field has a plain value unless the test cares."""

from typing import Any

from orchestrator.model import events
from orchestrator.model.records import (
    ActivityRecord,
    ActivityState,
    Attention,
    RunRecord,
    RunStatus,
    WorkerRecord,
)
from orchestrator.store import history, runs
from orchestrator.store.database import Database
from orchestrator.store.failures import TryAgain


def a_run(run_id: str = "run-1", **changes: Any) -> RunRecord:
    values: dict[str, Any] = {
        "run_id": run_id,
        "namespace": "default",
        "workflow_id": f"id-of-{run_id}",
        "workflow_type": "Fulfil",
        "queue": "orders",
        "lineage_id": run_id,
        "status": RunStatus.PENDING,
        "attention": Attention.NONE,
        "input": b"[1]",
        "input_digest": "digest",
        "last_seq": 0,
        "decision_token": "token-0",
        "created_at": 1_000,
    }
    return RunRecord(**{**values, **changes})


def an_activity(run_id: str = "run-1", number: int = 1, **changes: Any) -> ActivityRecord:
    values: dict[str, Any] = {
        "run_id": run_id,
        "number": number,
        "workflow_id": f"id-of-{run_id}",
        "name": "charge",
        "queue": "payments",
        "state": ActivityState.SCHEDULED,
        "attempt": 1,
        "input": b'{"args":[],"kwargs":{}}',
        "options": {"retry": {"attempts": 10}},
        "scheduled_at": 1_000,
        "attempt_scheduled_at": 1_000,
    }
    return ActivityRecord(**{**values, **changes})


def a_started_activity(run_id: str = "run-1", number: int = 1, **changes: Any) -> ActivityRecord:
    values = {"state": ActivityState.STARTED, "token": "token-1", "started_at": 1_100, "worker_id": "worker-1"}
    return an_activity(run_id, number, **{**values, **changes})


def a_worker(worker_id: str = "worker-1", **changes: Any) -> WorkerRecord:
    values: dict[str, Any] = {
        "worker_id": worker_id,
        "hostname": "celery@host",
        "namespace": "default",
        "queues": ("orders", "payments"),
        "pids": ((11, 1111), (12, 1212)),
        "tasks": ("charge",),
        "workflows": ("Fulfil",),
        "build_id": "",
        "seen_clock": 0,
        "seen_at": 1_000,
        "started_at": 900,
    }
    return WorkerRecord(**{**values, **changes})


def timer_started(seq: int, number: int | None = None) -> events.Event:
    body = events.TimerStarted(number=number or seq, due_at=seq * 1000, duration_us=1000)
    return events.Event(seq=seq, at=seq * 10, body=body)


def put_run(db: Database, run_id: str = "run-1", **changes: Any) -> RunRecord:
    run = a_run(run_id, **changes)
    assert db.run(lambda conn: runs.insert(conn, run), what="test")
    return run


def get_run(db: Database, run_id: str = "run-1") -> RunRecord:
    with db.read() as conn:
        run = runs.get(conn, run_id)
    assert run is not None
    return run


def append_one(db: Database, writer: str) -> bool:
    """What a decision does: reads under the lock, writes what follows from it, commits."""
    try:
        with db.lock_run("run-1") as lock:
            if lock is None:
                return False
            seq = lock.run().last_seq + 1
            assert [event.seq for event in lock.events()] == list(range(1, seq))
            history.append(lock.connection(), "run-1", [timer_started(seq)])
            values = {"last_seq": seq, "decision_token": f"{writer}-{seq}", "status": RunStatus.RUNNING}
            assert runs.update(lock.connection(), "run-1", values)
            lock.commit()
            return True
    except TryAgain:
        return False
