"""The system as it runs: the database, the broker, the workers, the sweep, and what waits for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.cli.checks.findings import Finding, Level, fine, problem, warning
from orchestrator.cli.checks.homes import activity_homes, used_queues, workflow_homes
from orchestrator.cli.checks.places import broker_url, database_url, listed
from orchestrator.errors import SchemaOutdated, Unavailable
from orchestrator.model.records import Attention, WorkerRecord
from orchestrator.store import migrate, queues, runs, sweeps, workers
from orchestrator.store.engines import SETTINGS, session_settings
from orchestrator.types import SECOND, Micros

if TYPE_CHECKING:
    from celery import Celery

    from orchestrator.engine.core import Engine
    from orchestrator.model.records import RunRecord
    from orchestrator.store.database import Connection
    from orchestrator.store.queues import Waiting

SWEEP_GRACE: Micros = 5 * SECOND
"""How much later than three intervals a tick may be before it is said that nobody sweeps."""
WAIT_GRACE: Micros = 60 * SECOND
"""How long work may wait on a queue that has a worker before it is mentioned."""
BLOCKED_LIMIT = 100
CONNECT_SECONDS = 3


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What the database says, read at one instant.

    Attributes:
        now: The database's clock.
        last_tick: When the sweep last ran.
        interval: The sweep's interval, in microseconds.
        workers: Workers that gave a sign of life in time.
        silent: Workers that did not.
        waiting: What waits, by queue.
        blocked: Some of the blocked runs.
        settings: PostgreSQL's session settings; empty on SQLite.
    """

    now: Micros
    last_tick: Micros | None
    interval: Micros
    workers: list[WorkerRecord]
    silent: list[WorkerRecord]
    waiting: dict[str, Waiting]
    blocked: list[RunRecord]
    settings: dict[str, str]

    @property
    def served(self) -> set[str]:
        """The queues that a live worker consumes."""
        return {queue for worker in self.workers if not worker.stopping for queue in worker.queues}


def check_system(app: Celery, engine: Engine) -> list[Finding]:
    """Returns what is wrong with the system as it runs, and what is right."""
    findings = list(broker(app))
    try:
        migrate.check(engine.db)
        snapshot = take_snapshot(engine)
    except SchemaOutdated as error:
        return [*findings, problem("schema", str(error), "celery -A … workflow migrate")]
    except Unavailable as error:
        return [
            *findings,
            _unreachable("database", f"The database {database_url(engine.db)} can't be reached: {error}"),
        ]
    findings.append(
        fine("database", f"The database {database_url(engine.db)} answers; its schema is at revision {migrate.HEAD}.")
    )
    return findings + [finding for check in CHECKS for finding in check(app, snapshot)]


def take_snapshot(engine: Engine) -> Snapshot:
    """Reads what the checks need.

    Raises:
        Unavailable: The database could not be reached.
        SchemaOutdated: A table is missing.
    """
    settings, namespace = engine.settings, engine.settings.namespace

    def read(conn: Connection) -> Snapshot:
        now = engine.db.now(conn)
        known = workers.all(conn)
        oldest = now - settings.micros("liveness_timeout")
        return Snapshot(
            now=now,
            last_tick=sweeps.last_tick(conn),
            interval=settings.micros("sweep_interval"),
            workers=[worker for worker in known if worker.seen_at >= oldest],
            silent=[worker for worker in known if worker.seen_at < oldest],
            waiting=queues.waiting(conn),
            blocked=runs.list_runs(conn, namespace, attention=Attention.BLOCKED, limit=BLOCKED_LIMIT),
            settings=session_settings(conn) if engine.db.dialect == "postgresql" else {},
        )

    return engine.db.query(read, what="look at the system")


def broker(app: Celery) -> Iterator[Finding]:
    """Whether the broker answers."""
    shown = broker_url(app)
    try:
        with app.connection_for_write(connect_timeout=CONNECT_SECONDS) as connection:
            connection.ensure_connection(max_retries=0, timeout=CONNECT_SECONDS)
    except Exception as error:  # noqa: BLE001 - each transport has errors of its own
        yield _unreachable("broker", f"The broker {shown} can't be reached: {str(error) or type(error).__name__}")
    else:
        yield fine("broker", f"The broker {shown} answers.")


def sweep(_app: Celery, snapshot: Snapshot) -> Iterator[Finding]:
    """Whether somebody drives time."""
    advice = "Start a worker (each runs the sweep when nobody else does), and celery beat for precision."
    if snapshot.last_tick is None:
        yield problem("sweep", "The sweep has never run: no timer, retry or deadline would ever be acted on.", advice)
        return
    age = snapshot.now - snapshot.last_tick
    if age > 3 * snapshot.interval + SWEEP_GRACE:
        yield problem(
            "sweep",
            f"Nobody sweeps: the last tick was {_seconds(age)} ago. Timers, retries and deadlines stand still.",
            advice,
        )
    else:
        yield fine("sweep", f"The sweep ran {_seconds(age)} ago.")


def live_workers(_app: Celery, snapshot: Snapshot) -> Iterator[Finding]:
    """Who is there."""
    for worker in snapshot.workers:
        state = " and is shutting down" if worker.stopping else ""
        yield fine("worker", f"Worker {worker.hostname} serves {', '.join(worker.queues) or 'no queue'}{state}.")
    for worker in snapshot.silent:
        yield warning(
            "silent-worker",
            f"Worker {worker.hostname} was last seen {_seconds(snapshot.now - worker.seen_at)} ago.",
            "If it was stopped, nothing: its attempts are tried again elsewhere, and its row goes away with the sweep.",
        )


def unserved_queues(app: Celery, snapshot: Snapshot) -> Iterator[Finding]:
    """Work that no worker will ever take, or that waits long."""
    for name, item in snapshot.waiting.items():
        since = 0 if item.oldest_at is None else max(0, snapshot.now - item.oldest_at)
        what = f"{item.runs} workflows to begin and {item.activities} activities"
        if name not in snapshot.served:
            yield problem(
                "no-worker",
                f"No live worker consumes queue {name!r}, where {what} wait, the oldest for {_seconds(since)}.",
                f"Start one: celery -A … worker -Q {name}",
            )
        elif since > WAIT_GRACE:
            yield warning(
                "backlog",
                f"On queue {name!r} {what} wait, the oldest for {_seconds(since)}.",
                "Its workers are busy, paused between retries, or too few: look at them in Flower, or add workers.",
            )
    idle = sorted(used_queues(app) - snapshot.served - set(snapshot.waiting))
    if idle and snapshot.workers:
        yield warning(
            "unserved-queue",
            f"Nothing waits there yet, but no live worker consumes {', '.join(map(repr, idle))}.",
            f"Add {'it' if len(idle) == 1 else 'them'} to a worker: celery -A … worker -Q …,{','.join(idle)}",
        )


def other_code(app: Celery, snapshot: Snapshot) -> Iterator[Finding]:
    """Workers that take messages of code they do not have."""
    tasks, types = activity_homes(app), workflow_homes(app)
    for worker in snapshot.workers:
        served = set(worker.queues)
        missing = [name for name, queue in tasks.items() if queue in served and name not in worker.tasks]
        missing += [name for name, queue in types.items() if queue in served and name not in worker.workflows]
        if missing:
            yield warning(
                "other-code",
                f"Worker {worker.hostname} takes messages for {listed(sorted(missing))}, which its code does not know.",
                "Restart it with the code that is here; a workflow it can't decide is blocked until then. If its queue "
                "serves several apps, give these a queue of their own.",
            )


def blocked_runs(_app: Celery, snapshot: Snapshot) -> Iterator[Finding]:
    """Runs whose code can't go on."""
    if snapshot.blocked:
        count = f"{BLOCKED_LIMIT} or more" if len(snapshot.blocked) == BLOCKED_LIMIT else str(len(snapshot.blocked))
        first = snapshot.blocked[0]
        yield problem(
            "blocked",
            f"{count} workflows are blocked until their code is fixed, among them {first.workflow_type} {first.workflow_id!r}.",
            "See why with `workflow show ID`; all of them: `workflow list --attention blocked`. Deploy code that fits "
            "their histories and they go on by themselves.",
        )


def session(_app: Celery, snapshot: Snapshot) -> Iterator[Finding]:
    """Sessions that could hold a lock for ever."""
    off = [name for name in SETTINGS if snapshot.settings.get(name, "0") in {"0", "0ms"}]
    if snapshot.settings and off:
        yield problem(
            "session-settings",
            f"PostgreSQL sessions come without {', '.join(off)}: a worker that vanishes could hold a lock for ever. A "
            "pooler (pgbouncer in transaction mode) drops settings that are made per session.",
            "Set them for the role: ALTER ROLE … SET idle_in_transaction_session_timeout = '5s', and so on.",
        )
    isolation = snapshot.settings.get("transaction_isolation", "read committed")
    if isolation != "read committed":
        yield problem(
            "isolation",
            f"Transactions run at {isolation!r}; workflows need 'read committed'.",
            "ALTER ROLE … SET default_transaction_isolation = 'read committed'",
        )


CHECKS: tuple[Callable[[Celery, Snapshot], Iterator[Finding]], ...] = (
    sweep,
    live_workers,
    unserved_queues,
    other_code,
    blocked_runs,
    session,
)
"""Everything that is looked at in a snapshot, in the order it is shown."""


def _unreachable(code: str, message: str) -> Finding:
    return Finding(
        level=Level.UNREACHABLE,
        code=code,
        message=message,
        advice="Start it, or correct its URL in the app's settings.",
    )


def _seconds(duration: Micros) -> str:
    seconds = duration / SECOND
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
