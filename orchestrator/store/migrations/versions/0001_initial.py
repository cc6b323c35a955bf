"""The tables of the first version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001_0001"
down_revision = None
branch_labels = None
depends_on = None

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REWRITTEN = "fillfactor = 70"
CHURNING = (
    "fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,"
    " autovacuum_vacuum_cost_delay = 1, autovacuum_analyze_scale_factor = 0.05"
)
STORAGE = {
    "orchestrator_inbox": CHURNING,
    "orchestrator_outbox": CHURNING,
    "orchestrator_queues": REWRITTEN,
    "orchestrator_runs": REWRITTEN,
    "orchestrator_sweep": REWRITTEN,
    "orchestrator_workers": REWRITTEN,
    "orchestrator_activities": CHURNING,
    "orchestrator_timers": CHURNING,
}
TABLES = (
    "orchestrator_inbox",
    "orchestrator_namespaces",
    "orchestrator_outbox",
    "orchestrator_queues",
    "orchestrator_runs",
    "orchestrator_signals",
    "orchestrator_sweep",
    "orchestrator_workers",
    "orchestrator_activities",
    "orchestrator_history",
    "orchestrator_timers",
)


def upgrade() -> None:
    _inbox()
    _namespaces()
    _outbox()
    _queues()
    _runs()
    _signals()
    _sweep()
    _workers()
    _activities()
    _history()
    _timers()
    if op.get_bind().dialect.name == "postgresql":
        for table, options in STORAGE.items():
            op.execute(f"ALTER TABLE {table} SET ({options})")
    op.execute("INSERT INTO orchestrator_sweep (id, clock_us, ticked_at) VALUES (1, 0, NULL)")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)


def _partial_index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    op.create_index(name, table, columns, unique=unique, postgresql_where=sa.text(where), sqlite_where=sa.text(where))


def _inbox() -> None:
    op.create_table(
        "orchestrator_inbox",
        sa.Column("id", ROW_ID, sa.Identity(), nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=True),
        sa.Column("attrs", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.Column("published_at", sa.BigInteger(), nullable=False),
        sa.Column("next_send_at", sa.BigInteger(), nullable=False),
        sa.Column("send_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("orchestrator_inbox_pkey")),
        sa.CheckConstraint(
            "kind IN ('signal', 'cancel', 'terminate', 'timer', 'activity_completed', 'activity_failed', 'deadline')",
            name=op.f("orchestrator_inbox_kind_check"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("orchestrator_inbox_next_send", "orchestrator_inbox", ["next_send_at"])
    op.create_index("orchestrator_inbox_run", "orchestrator_inbox", ["run_id", "id"])


def _namespaces() -> None:
    op.create_table(
        "orchestrator_namespaces",
        sa.Column("name", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("orchestrator_namespaces_pkey")),
    )


def _outbox() -> None:
    op.create_table(
        "orchestrator_outbox",
        sa.Column("id", ROW_ID, sa.Identity(), nullable=False),
        sa.Column("namespace", NAME, nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("attrs", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("next_send_at", sa.BigInteger(), nullable=False),
        sa.Column("send_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("orchestrator_outbox_pkey")),
        sqlite_autoincrement=True,
    )
    op.create_index("orchestrator_outbox_next_send", "orchestrator_outbox", ["next_send_at"])


def _queues() -> None:
    op.create_table(
        "orchestrator_queues",
        sa.Column("queue", NAME, nullable=False),
        sa.Column("progress_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("queue", name=op.f("orchestrator_queues_pkey")),
    )


def _runs() -> None:
    op.create_table(
        "orchestrator_runs",
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("namespace", NAME, nullable=False),
        sa.Column("workflow_id", NAME, nullable=False),
        sa.Column("workflow_type", NAME, nullable=False),
        sa.Column("queue", NAME, nullable=False),
        sa.Column("lineage_id", NAME, nullable=False),
        sa.Column("status", NAME, nullable=False),
        sa.Column("attention", NAME, nullable=False),
        sa.Column("input", sa.LargeBinary(), nullable=False),
        sa.Column("input_digest", NAME, nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("decision_token", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("previous_run_id", NAME, nullable=True),
        sa.Column("successor_run_id", NAME, nullable=True),
        sa.Column("request_id", NAME, nullable=True),
        sa.Column("memo", sa.LargeBinary(), nullable=True),
        sa.Column("declared_signals", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.Column("last_event_at", sa.BigInteger(), nullable=False),
        sa.Column("result", sa.LargeBinary(), nullable=True),
        sa.Column("failure", sa.LargeBinary(), nullable=True),
        sa.Column("blocked_by", sa.Text(), nullable=True),
        sa.Column("blocked_count", sa.Integer(), nullable=False),
        sa.Column("next_try_at", sa.BigInteger(), nullable=True),
        sa.Column("next_send_at", sa.BigInteger(), nullable=True),
        sa.Column("send_count", sa.Integer(), nullable=False),
        sa.Column("published_at", sa.BigInteger(), nullable=True),
        sa.Column("deadline_at", sa.BigInteger(), nullable=True),
        sa.Column("build_id", NAME, nullable=False),
        sa.Column("python_version", NAME, nullable=False),
        sa.Column("engine_version", NAME, nullable=False),
        sa.Column("close_reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("orchestrator_runs_pkey")),
        sa.CheckConstraint(
            "attention IN ('none', 'blocked', 'paused', 'no_worker')", name=op.f("orchestrator_runs_attention_check")
        ),
        sa.CheckConstraint(
            "(closed_at IS NULL) = (status IN ('PENDING', 'RUNNING'))", name=op.f("orchestrator_runs_closed_at_check")
        ),
        sa.CheckConstraint(
            "closed_at IS NULL OR next_send_at IS NULL", name=op.f("orchestrator_runs_closed_is_quiet_check")
        ),
        sa.CheckConstraint("last_seq >= 0", name=op.f("orchestrator_runs_last_seq_check")),
        sa.CheckConstraint(
            "status IN ('PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELED', 'TERMINATED', 'TIMED_OUT', 'CONTINUED_AS_NEW')",
            name=op.f("orchestrator_runs_status_check"),
        ),
    )
    _partial_index(
        "orchestrator_runs_deadline",
        "orchestrator_runs",
        ["deadline_at"],
        "status IN ('PENDING', 'RUNNING') AND deadline_at IS NOT NULL",
    )
    op.create_index("orchestrator_runs_lineage", "orchestrator_runs", ["lineage_id", "created_at", "run_id"])
    op.create_index("orchestrator_runs_list", "orchestrator_runs", ["namespace", "created_at", "run_id"])
    _partial_index(
        "orchestrator_runs_list_attention",
        "orchestrator_runs",
        ["namespace", "attention", "created_at", "run_id"],
        "attention <> 'none'",
    )
    _partial_index(
        "orchestrator_runs_list_failed",
        "orchestrator_runs",
        ["namespace", "status", "created_at", "run_id"],
        "status IN ('FAILED', 'CANCELED', 'TERMINATED', 'TIMED_OUT')",
    )
    _partial_index(
        "orchestrator_runs_list_open",
        "orchestrator_runs",
        ["namespace", "created_at", "run_id"],
        "status IN ('PENDING', 'RUNNING')",
    )
    _partial_index("orchestrator_runs_next_send", "orchestrator_runs", ["next_send_at"], "next_send_at IS NOT NULL")
    _partial_index(
        "orchestrator_runs_open_id",
        "orchestrator_runs",
        ["namespace", "workflow_id"],
        "status IN ('PENDING', 'RUNNING')",
        unique=True,
    )
    _partial_index(
        "orchestrator_runs_request",
        "orchestrator_runs",
        ["namespace", "workflow_id", "request_id"],
        "request_id IS NOT NULL",
        unique=True,
    )
    op.create_index(
        "orchestrator_runs_workflow_id", "orchestrator_runs", ["namespace", "workflow_id", "created_at", "run_id"]
    )


def _signals() -> None:
    op.create_table(
        "orchestrator_signals",
        sa.Column("lineage_id", NAME, nullable=False),
        sa.Column("signal_id", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("digest", NAME, nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lineage_id", "signal_id", name=op.f("orchestrator_signals_pkey")),
    )


def _sweep() -> None:
    op.create_table(
        "orchestrator_sweep",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("clock_us", sa.BigInteger(), nullable=False),
        sa.Column("ticked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("orchestrator_sweep_pkey")),
        sa.CheckConstraint("id = 1", name=op.f("orchestrator_sweep_one_row_check")),
    )


def _workers() -> None:
    op.create_table(
        "orchestrator_workers",
        sa.Column("worker_id", NAME, nullable=False),
        sa.Column("hostname", NAME, nullable=False),
        sa.Column("namespace", NAME, nullable=False),
        sa.Column("queues", sa.Text(), nullable=False),
        sa.Column("pids", sa.Text(), nullable=False),
        sa.Column("tasks", sa.Text(), nullable=False),
        sa.Column("workflows", sa.Text(), nullable=False),
        sa.Column("build_id", NAME, nullable=False),
        sa.Column("seen_clock", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("stopping", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("worker_id", name=op.f("orchestrator_workers_pkey")),
    )


def _activities() -> None:
    op.create_table(
        "orchestrator_activities",
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("workflow_id", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("queue", NAME, nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("input", sa.LargeBinary(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("scheduled_at", sa.BigInteger(), nullable=False),
        sa.Column("token", NAME, nullable=True),
        sa.Column("nonce", NAME, nullable=True),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("worker_id", NAME, nullable=True),
        sa.Column("pid", sa.BigInteger(), nullable=True),
        sa.Column("pid_started", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("attempt_scheduled_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.Column("published_at", sa.BigInteger(), nullable=True),
        sa.Column("next_send_at", sa.BigInteger(), nullable=True),
        sa.Column("send_count", sa.Integer(), nullable=False),
        sa.Column("deadline_at", sa.BigInteger(), nullable=True),
        sa.Column("claim_clock", sa.BigInteger(), nullable=True),
        sa.Column("heartbeat_due_clock", sa.BigInteger(), nullable=True),
        sa.Column("heartbeat_check_clock", sa.BigInteger(), nullable=True),
        sa.Column("heartbeat_details", sa.LargeBinary(), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("last_failure", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("orchestrator_activities_pkey")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["orchestrator_runs.run_id"], name=op.f("orchestrator_activities_run_id_fkey")
        ),
        sa.CheckConstraint("attempt >= 1", name=op.f("orchestrator_activities_attempt_check")),
        sa.CheckConstraint(
            "(closed_at IS NULL) = (state IN ('scheduled', 'started'))",
            name=op.f("orchestrator_activities_closed_at_check"),
        ),
        sa.CheckConstraint("number >= 1", name=op.f("orchestrator_activities_number_check")),
        sa.CheckConstraint(
            "state IN ('scheduled', 'started', 'completed', 'failed', 'canceled')",
            name=op.f("orchestrator_activities_state_check"),
        ),
        sa.CheckConstraint(
            "(token IS NOT NULL) = (state = 'started')", name=op.f("orchestrator_activities_token_check")
        ),
    )
    _partial_index(
        "orchestrator_activities_deadline",
        "orchestrator_activities",
        ["deadline_at"],
        "state IN ('scheduled', 'started') AND deadline_at IS NOT NULL",
    )
    _partial_index(
        "orchestrator_activities_heartbeat", "orchestrator_activities", ["heartbeat_check_clock"], "state = 'started'"
    )
    _partial_index(
        "orchestrator_activities_next_send", "orchestrator_activities", ["next_send_at"], "state = 'scheduled'"
    )
    _partial_index("orchestrator_activities_worker", "orchestrator_activities", ["worker_id"], "state = 'started'")


def _history() -> None:
    op.create_table(
        "orchestrator_history",
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.SmallInteger(), nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("attrs", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "seq", name=op.f("orchestrator_history_pkey")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["orchestrator_runs.run_id"], name=op.f("orchestrator_history_run_id_fkey")
        ),
        sa.CheckConstraint("seq >= 1", name=op.f("orchestrator_history_seq_check")),
    )


def _timers() -> None:
    op.create_table(
        "orchestrator_timers",
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("orchestrator_timers_pkey")),
        sa.ForeignKeyConstraint(["run_id"], ["orchestrator_runs.run_id"], name=op.f("orchestrator_timers_run_id_fkey")),
        sa.CheckConstraint("number >= 1", name=op.f("orchestrator_timers_number_check")),
    )
    op.create_index("orchestrator_timers_due", "orchestrator_timers", ["due_at"])
