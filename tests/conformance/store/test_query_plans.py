"""Every hot question is one index probe: no plan reads a table from end to end (DESIGN §7)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, text

from orchestrator.model.records import ActivityState, Attention, InboxKind, RunStatus
from orchestrator.store import activities, history, inbox, outbox, queues, runs, signals, sweeps, timers, workers
from orchestrator.store.database import Connection, Database
from orchestrator.store.locks_postgresql import try_lock
from tests.conformance.store.builders import a_run, an_activity, timer_started

# Rows enough that a plan without an index would cost visibly more; most of the work is long done.
FILL = {
    "postgresql": "SELECT n FROM generate_series(1, 4000) AS n",
    "sqlite": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 4000) SELECT n FROM t",
}
RUNS = """
INSERT INTO orchestrator_runs (run_id, namespace, workflow_id, workflow_type, queue, lineage_id, status, attention,
    input, input_digest, last_seq, decision_token, created_at, closed_at, last_event_at, blocked_count, next_send_at,
    send_count, deadline_at, build_id, python_version, engine_version, close_reason, request_id)
SELECT 'run-' || n, 'default', 'id-' || n, 'Fulfil', 'orders', 'run-' || n,
    CASE WHEN n % 100 = 0 THEN 'RUNNING' WHEN n % 100 = 1 THEN 'FAILED' ELSE 'COMPLETED' END,
    CASE WHEN n % 500 = 0 THEN 'blocked' ELSE 'none' END, {blob}, 'd', 9, 't', n,
    CASE WHEN n % 100 = 0 THEN NULL ELSE n END, n, 0, CASE WHEN n % 200 = 0 THEN n END, 0, n, '', '', '', '""', 'r' || n
FROM ({fill}) AS filled
"""
ACTIVITIES = """
INSERT INTO orchestrator_activities (run_id, number, workflow_id, name, queue, state, attempt, input, options,
    scheduled_at, token, retries, worker_id, pid, failures, losses, attempt_scheduled_at, closed_at, next_send_at,
    send_count, deadline_at, claim_clock, heartbeat_due_clock, heartbeat_check_clock, cancel_requested)
SELECT 'run-' || n, 1, 'id', 'charge', 'payments',
    CASE WHEN n % 100 = 0 THEN 'scheduled' WHEN n % 100 = 1 THEN 'started' ELSE 'completed' END, 1, {blob}, '{{}}', n,
    CASE WHEN n % 100 = 1 THEN 'token' END, 0, 'worker-' || (n % 300), 7, 0, 0, n,
    CASE WHEN n % 100 > 1 THEN n END, n, 0, n, n, n, n, {false}
FROM ({fill}) AS filled
"""
OTHERS = """
INSERT INTO orchestrator_history (run_id, seq, at, version, kind, attrs)
SELECT 'run-' || n, 1, n, 1, 'RunStarted', '{{}}' FROM ({fill}) AS filled;
INSERT INTO orchestrator_inbox (run_id, kind, created_at, attrs, published_at, next_send_at, send_count)
SELECT 'run-' || n, 'timer', n, '{{}}', n, n, 0 FROM ({fill}) AS filled;
INSERT INTO orchestrator_timers (run_id, number, due_at) SELECT 'run-' || n, 1, n FROM ({fill}) AS filled;
INSERT INTO orchestrator_signals (lineage_id, signal_id, name, digest, run_id, at)
SELECT 'run-' || n, 's', 'a', 'd', 'run-' || n, n FROM ({fill}) AS filled;
INSERT INTO orchestrator_outbox (namespace, kind, attrs, created_at, next_send_at, send_count)
SELECT 'default', 'signal', '{{}}', n, n, 0 FROM ({fill}) AS filled;
ANALYZE
"""
# One row, or a row per worker process or queue: a table of one page is read whole, whatever the indexes.
SMALL = {"orchestrator_sweep", "orchestrator_workers", "orchestrator_queues"}


@pytest.fixture
def full_db(db: Database) -> Database:
    blob, false = ("''::bytea", "false") if db.dialect == "postgresql" else ("x''", "0")
    statements = (RUNS + ";" + ACTIVITIES + ";" + OTHERS).format(fill=FILL[db.dialect], blob=blob, false=false)
    with db.write() as conn:
        for statement in statements.split(";"):
            conn.execute(text(statement))
    return db


Question = Callable[[Connection], Any]
LIST: dict[str, Any] = {"limit": 10, "cursor": (3000, "run-3000")}
QUESTIONS: dict[str, Question] = {
    "lock a run": lambda c: try_lock(c, "run-100"),
    "insert a run": lambda c: runs.insert(c, a_run("new", request_id="r")),
    "get a run": lambda c: runs.get(c, "run-100"),
    "version of a run": lambda c: runs.version(c, "run-100"),
    "open run": lambda c: runs.find_open(c, "default", "id-100"),
    "latest run": lambda c: runs.find_latest(c, "default", "id-101"),
    "start request": lambda c: runs.find_request(c, "default", "id-101", "r101"),
    "open leaf": lambda c: runs.open_leaf(c, "run-100"),
    "latest of lineage": lambda c: runs.latest_of_lineage(c, "run-100"),
    "update a run": lambda c: runs.update(c, "run-100", {"last_seq": 10}, expect={"last_seq": 9}),
    "runs due": lambda c: runs.due(c, 1000, 10),
    "runs past deadline": lambda c: runs.past_deadline(c, 1000, 10),
    "next run due": runs.next_due,
    "list": lambda c: runs.list_runs(c, "default", **LIST),
    "list open": lambda c: runs.list_runs(c, "default", status=[RunStatus.PENDING, RunStatus.RUNNING], **LIST),
    "list failed": lambda c: runs.list_runs(c, "default", status=RunStatus.FAILED, **LIST),
    "list blocked": lambda c: runs.list_runs(c, "default", attention=Attention.BLOCKED, **LIST),
    "list a workflow id": lambda c: runs.list_runs(c, "default", workflow_id="id-5", limit=10),
    "read history": lambda c: history.read(c, "run-100", after=0, limit=100),
    "append history": lambda c: history.append(c, "run-100", [timer_started(2), timer_started(3)]),
    "insert into inbox": lambda c: inbox.insert(c, "run-100", InboxKind.SIGNAL, now=1, next_send_at=2),
    "read inbox": lambda c: inbox.read(c, "run-100", 100),
    "older inbox row": lambda c: inbox.has_older(c, "run-100", 5000, 0),
    "count inbox": lambda c: inbox.count(c, "run-100", 1000),
    "any inbox row": lambda c: inbox.exists(c, "run-100"),
    "drain inbox": lambda c: inbox.delete(c, [1, 2, 3]),
    "inboxes due": lambda c: inbox.due(c, 50, 10),
    "postpone inbox": lambda c: inbox.postpone(c, "run-200", 10_000, 20_000),
    "next inbox due": inbox.next_due,
    "empty inbox": lambda c: inbox.delete_all(c, "run-201"),
    "insert activities": lambda c: activities.insert(c, [an_activity("run-100", 2)]),
    "lock an activity": lambda c: activities.lock(c, "run-100", 1),
    "claim an activity": lambda c: activities.update(
        c, "run-100", 1, {"state": ActivityState.STARTED, "token": "t", "heartbeat_due_clock": 9}, {"attempt": 1}
    ),
    "activities of a run": lambda c: activities.of_run(c, "run-100"),
    "open activities of a run": lambda c: activities.open_of_run(c, "run-100"),
    "close activities": lambda c: activities.close_all(c, "run-300", 5),
    "activities to send": lambda c: activities.due_to_send(c, 1000, 10),
    "activities past deadline": lambda c: activities.past_deadline(c, 1000, 10),
    "heartbeats overdue": lambda c: activities.heartbeat_overdue(c, 1000, 10),
    "move heartbeat checks": lambda c: activities.move_heartbeat_checks(c, 1000, 10),
    "started by a worker": lambda c: activities.started_by(
        c, "worker-1", not_pids=[(1, 2)], claimed_before_clock=9999, limit=10
    ),
    "started by unknown workers": lambda c: activities.started_by_unknown(c, ["worker-1"], 10),
    "next activity due": activities.next_due,
    "insert timers": lambda c: timers.insert(c, [("run-100", 2, 5)]),
    "cancel timers": lambda c: timers.delete(c, "run-100", [1, 2]),
    "cancel all timers": lambda c: timers.delete_all(c, "run-100"),
    "pop due timers": lambda c: timers.pop_due(c, 100, 10),
    "next timer due": timers.next_due,
    "timers of a run": lambda c: timers.of_run(c, "run-200"),
    "signal key": lambda c: signals.key(c, "run-100", "s"),
    "tick": lambda c: sweeps.tick(c, 5, 1),
    "worker": lambda c: workers.get(c, "worker-1"),
    "queue progress": lambda c: queues.note_progress(c, "orders", 5),
    "queues": lambda c: queues.progress(c, ["orders"]),
    "what waits": queues.waiting,
    "outbox due": lambda c: outbox.due(c, 100, 10),
    "drain outbox": lambda c: outbox.delete(c, [1, 2]),
}


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_no_hot_question_reads_a_whole_table_on_postgresql(full_db: Database) -> None:
    assert offenders(full_db, _plan_postgresql) == {}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_no_hot_question_reads_a_whole_table_on_sqlite(full_db: Database) -> None:
    assert offenders(full_db, _plan_sqlite) == {}


def offenders(db: Database, plan: Callable[[Any, str, Any], list[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with db.write() as conn:
        for name, question in QUESTIONS.items():
            with recorded_plans(conn, plan) as plans:
                question(conn)
            assert plans, name
            if scans := [line for line in plans if _reads_everything(line)]:
                found[name] = scans
    return found


def _reads_everything(line: str) -> bool:
    if any(table in line for table in SMALL):
        return False
    return "Seq Scan on orchestrator_" in line or (line.startswith("SCAN orchestrator_") and "INDEX" not in line)


@contextmanager
def recorded_plans(conn: Connection, plan: Callable[[Any, str, Any], list[str]]) -> Iterator[list[str]]:
    """Explains each statement right before it is executed."""
    plans: list[str] = []

    def explain(_conn: Any, cursor: Any, statement: str, parameters: Any, _context: Any, executemany: bool) -> None:
        first = parameters[0] if executemany and isinstance(parameters, (list, tuple)) else parameters
        if statement.lstrip().split()[0] in {"SELECT", "UPDATE", "DELETE", "INSERT", "WITH"}:
            plans.extend(plan(cursor.connection, statement, first))

    event.listen(conn, "before_cursor_execute", explain)
    try:
        yield plans
    finally:
        event.remove(conn, "before_cursor_execute", explain)


def _plan_postgresql(connection: Any, statement: str, parameters: Any) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + statement, parameters)
        return [str(row[0]) for row in cursor]


def _plan_sqlite(connection: Any, statement: str, parameters: Any) -> list[str]:
    return [str(row[3]) for row in connection.execute("EXPLAIN QUERY PLAN " + statement, parameters)] or ["nothing"]


def test_writing_a_decision_or_a_heartbeat_moves_no_index_entry(postgres_db: Database) -> None:
    """Heap-only updates: what every decision and heartbeat writes stands in no index."""
    with postgres_db.write() as conn:
        runs.insert(conn, a_run())
        activities.insert(conn, [an_activity()])
        claim = {"state": ActivityState.STARTED, "token": "t", "heartbeat_due_clock": 1}
        activities.update(conn, "run-1", 1, claim)
    before = updates_of(postgres_db)
    for number in range(1, 101):
        with postgres_db.write() as conn:
            values = {"last_seq": number, "decision_token": f"t{number}", "last_event_at": number}
            runs.update(conn, "run-1", values)
            beat = {"heartbeat_due_clock": number, "heartbeat_details": b"d"}
            activities.update(conn, "run-1", 1, beat)
    for table, (updates, hot) in updates_of(postgres_db).items():
        assert updates - before[table][0] == 100, table
        # Now and then a page is full, and the row moves to the next.
        assert hot - before[table][1] >= 90, table


def updates_of(db: Database) -> dict[str, tuple[int, int]]:
    query = text(
        "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables"
        " WHERE relname IN ('orchestrator_runs', 'orchestrator_activities')"
    )
    with db.write() as conn:
        conn.execute(text("SELECT pg_stat_force_next_flush()"))
    with db.read() as conn:
        return {name: (updates, hot) for name, updates, hot in conn.execute(query)}
