"""The tables, and the constraints that carry the invariants.

What must never be false is a constraint here, not a check in Python:

* one open run per (namespace, workflow id), one run per start request;
* (run, seq) of history, (run, number) of activities and timers are unique (P1, P10);
* a run is closed exactly when it has a closing time, and then asks nothing of the sweep;
* an attempt is started exactly when somebody holds its fencing token (P7).

What the sweep asks is one probe of a partial index each, and rows of closed work are in none of them (§7).
``last_seq``, the decision token and heartbeats stand in no index and no predicate, so that writing them
stays a heap-only update. A heartbeat moves ``heartbeat_due_clock``; the index holds
``heartbeat_check_clock``, which only a claim and the sweep move.

The inbox has no foreign key: senders must not touch the run row (P9). Constants in predicates are
literals because SQLite uses a partial index only where the query repeats its predicate word for word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)

from orchestrator.model.records import ActivityState, Attention, InboxKind, RunStatus
from orchestrator.store.columns import EnumText, Instant, JsonText, Name, RowId, TupleText

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

OPEN_RUN: Final = "status IN ('PENDING', 'RUNNING')"
FAILED_RUN: Final = "status IN ('FAILED', 'CANCELED', 'TERMINATED', 'TIMED_OUT')"
NEEDS_ATTENTION: Final = "attention <> 'none'"
OPEN_ACTIVITY: Final = "state IN ('scheduled', 'started')"
SCHEDULED: Final = "state = 'scheduled'"
STARTED: Final = "state = 'started'"


def _one_of(column: str, values: type[RunStatus | Attention | ActivityState | InboxKind]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def _partial(name: str, *columns: Any, where: str, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, postgresql_where=text(where), sqlite_where=text(where))


namespaces = Table(
    "orchestrator_namespaces",
    metadata,
    Column("name", Name, primary_key=True),
    Column("created_at", Instant, nullable=False),
)

runs = Table(
    "orchestrator_runs",
    metadata,
    Column("run_id", Name, primary_key=True),
    Column("namespace", Name, nullable=False),
    Column("workflow_id", Name, nullable=False),
    Column("workflow_type", Name, nullable=False),
    Column("queue", Name, nullable=False),
    Column("lineage_id", Name, nullable=False),
    Column("status", EnumText(RunStatus), nullable=False),
    Column("attention", EnumText(Attention), nullable=False),
    Column("input", LargeBinary, nullable=False),
    Column("input_digest", Name, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("decision_token", Name, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("previous_run_id", Name),
    Column("successor_run_id", Name),
    Column("request_id", Name),
    Column("memo", LargeBinary),
    Column("declared_signals", TupleText),
    Column("started_at", Instant),
    Column("closed_at", Instant),
    Column("last_event_at", Instant, nullable=False),
    Column("result", LargeBinary),
    Column("failure", LargeBinary),
    Column("blocked_by", Text),
    Column("blocked_count", Integer, nullable=False),
    Column("next_try_at", Instant),
    Column("next_send_at", Instant),
    Column("send_count", Integer, nullable=False),
    Column("published_at", Instant),
    Column("deadline_at", Instant),
    Column("build_id", Name, nullable=False),
    Column("python_version", Name, nullable=False),
    Column("engine_version", Name, nullable=False),
    Column("close_reason", JsonText, nullable=False),
    _one_of("status", RunStatus),
    _one_of("attention", Attention),
    CheckConstraint(f"(closed_at IS NULL) = ({OPEN_RUN})", name="closed_at"),
    CheckConstraint("closed_at IS NULL OR next_send_at IS NULL", name="closed_is_quiet"),
    CheckConstraint("last_seq >= 0", name="last_seq"),
    _partial("orchestrator_runs_open_id", "namespace", "workflow_id", where=OPEN_RUN, unique=True),
    _partial(
        "orchestrator_runs_request",
        "namespace",
        "workflow_id",
        "request_id",
        where="request_id IS NOT NULL",
        unique=True,
    ),
    Index("orchestrator_runs_workflow_id", "namespace", "workflow_id", "created_at", "run_id"),
    Index("orchestrator_runs_lineage", "lineage_id", "created_at", "run_id"),
    Index("orchestrator_runs_list", "namespace", "created_at", "run_id"),
    _partial("orchestrator_runs_list_open", "namespace", "created_at", "run_id", where=OPEN_RUN),
    _partial("orchestrator_runs_list_failed", "namespace", "status", "created_at", "run_id", where=FAILED_RUN),
    _partial(
        "orchestrator_runs_list_attention", "namespace", "attention", "created_at", "run_id", where=NEEDS_ATTENTION
    ),
    _partial("orchestrator_runs_next_send", "next_send_at", where="next_send_at IS NOT NULL"),
    _partial("orchestrator_runs_deadline", "deadline_at", where=f"{OPEN_RUN} AND deadline_at IS NOT NULL"),
)

history = Table(
    "orchestrator_history",
    metadata,
    Column("run_id", Name, ForeignKey("orchestrator_runs.run_id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False),
    Column("version", SmallInteger, nullable=False),
    Column("kind", Name, nullable=False),
    Column("attrs", JsonText, nullable=False),
    Column("payload", LargeBinary),
    CheckConstraint("seq >= 1", name="seq"),
)

inbox = Table(
    "orchestrator_inbox",
    metadata,
    Column("id", RowId, Identity(), primary_key=True),
    Column("run_id", Name, nullable=False),
    Column("kind", EnumText(InboxKind), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("number", BigInteger),
    Column("attrs", JsonText, nullable=False),
    Column("payload", LargeBinary),
    Column("published_at", Instant, nullable=False),
    Column("next_send_at", Instant, nullable=False),
    Column("send_count", Integer, nullable=False),
    _one_of("kind", InboxKind),
    Index("orchestrator_inbox_run", "run_id", "id"),
    Index("orchestrator_inbox_next_send", "next_send_at"),
    sqlite_autoincrement=True,
)

activities = Table(
    "orchestrator_activities",
    metadata,
    Column("run_id", Name, ForeignKey("orchestrator_runs.run_id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("workflow_id", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("queue", Name, nullable=False),
    Column("state", EnumText(ActivityState), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("input", LargeBinary, nullable=False),
    Column("options", JsonText, nullable=False),
    Column("scheduled_at", Instant, nullable=False),
    Column("token", Name),
    Column("nonce", Name),
    Column("retries", Integer, nullable=False),
    Column("worker_id", Name),
    Column("pid", BigInteger),
    Column("pid_started", BigInteger),
    Column("failures", Integer, nullable=False),
    Column("losses", Integer, nullable=False),
    Column("attempt_scheduled_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("closed_at", Instant),
    Column("published_at", Instant),
    Column("next_send_at", Instant),
    Column("send_count", Integer, nullable=False),
    Column("deadline_at", Instant),
    Column("claim_clock", Instant),
    Column("heartbeat_due_clock", Instant),
    Column("heartbeat_check_clock", Instant),
    Column("heartbeat_details", LargeBinary),
    Column("cancel_requested", Boolean, nullable=False),
    Column("last_failure", LargeBinary),
    _one_of("state", ActivityState),
    CheckConstraint("number >= 1", name="number"),
    CheckConstraint("attempt >= 1", name="attempt"),
    CheckConstraint(f"(closed_at IS NULL) = ({OPEN_ACTIVITY})", name="closed_at"),
    CheckConstraint(f"(token IS NOT NULL) = ({STARTED})", name="token"),
    _partial("orchestrator_activities_next_send", "next_send_at", where=SCHEDULED),
    _partial("orchestrator_activities_deadline", "deadline_at", where=f"{OPEN_ACTIVITY} AND deadline_at IS NOT NULL"),
    _partial("orchestrator_activities_heartbeat", "heartbeat_check_clock", where=STARTED),
    _partial("orchestrator_activities_worker", "worker_id", where=STARTED),
)

timers = Table(
    "orchestrator_timers",
    metadata,
    Column("run_id", Name, ForeignKey("orchestrator_runs.run_id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("due_at", Instant, nullable=False),
    CheckConstraint("number >= 1", name="number"),
    Index("orchestrator_timers_due", "due_at"),
)

signals = Table(
    "orchestrator_signals",
    metadata,
    Column("lineage_id", Name, primary_key=True),
    Column("signal_id", Name, primary_key=True),
    Column("name", Name, nullable=False),
    Column("digest", Name, nullable=False),
    Column("run_id", Name, nullable=False),
    Column("at", Instant, nullable=False),
)

workers = Table(
    "orchestrator_workers",
    metadata,
    Column("worker_id", Name, primary_key=True),
    Column("hostname", Name, nullable=False),
    Column("namespace", Name, nullable=False),
    Column("queues", TupleText, nullable=False),
    Column("pids", TupleText, nullable=False),
    Column("tasks", TupleText, nullable=False),
    Column("workflows", TupleText, nullable=False),
    Column("build_id", Name, nullable=False),
    Column("seen_clock", Instant, nullable=False),
    Column("seen_at", Instant, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("stopping", Boolean, nullable=False),
)

sweep = Table(
    "orchestrator_sweep",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("clock_us", BigInteger, nullable=False),
    Column("ticked_at", Instant),
    CheckConstraint("id = 1", name="one_row"),
)

queues = Table(
    "orchestrator_queues",
    metadata,
    Column("queue", Name, primary_key=True),
    Column("progress_at", Instant, nullable=False),
)

outbox = Table(
    "orchestrator_outbox",
    metadata,
    Column("id", RowId, Identity(), primary_key=True),
    Column("namespace", Name, nullable=False),
    Column("kind", Name, nullable=False),
    Column("attrs", JsonText, nullable=False),
    Column("payload", LargeBinary),
    Column("created_at", Instant, nullable=False),
    Column("next_send_at", Instant, nullable=False),
    Column("send_count", Integer, nullable=False),
    Index("orchestrator_outbox_next_send", "next_send_at"),
    sqlite_autoincrement=True,
)

_REWRITTEN: Final = {"fillfactor": 70}
_CHURNING: Final = {
    "fillfactor": 70,
    "autovacuum_vacuum_scale_factor": 0.02,
    "autovacuum_vacuum_threshold": 1000,
    "autovacuum_vacuum_cost_delay": 1,
    "autovacuum_analyze_scale_factor": 0.05,
}

POSTGRESQL_STORAGE: Final[Mapping[Table, Mapping[str, float]]] = {
    runs: _REWRITTEN,
    workers: _REWRITTEN,
    sweep: _REWRITTEN,
    queues: _REWRITTEN,
    inbox: _CHURNING,
    activities: _CHURNING,
    timers: _CHURNING,
    outbox: _CHURNING,
}
"""Storage parameters: rows that are rewritten leave room on their page; small hot tables are vacuumed early."""

__all__ = [
    "FAILED_RUN",
    "NEEDS_ATTENTION",
    "OPEN_ACTIVITY",
    "OPEN_RUN",
    "POSTGRESQL_STORAGE",
    "SCHEDULED",
    "STARTED",
    "activities",
    "history",
    "inbox",
    "metadata",
    "namespaces",
    "outbox",
    "queues",
    "runs",
    "signals",
    "sweep",
    "timers",
    "workers",
]
