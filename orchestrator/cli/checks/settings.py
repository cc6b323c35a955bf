"""Settings of Celery that lose, double or hold up work. Nothing is connected to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from orchestrator.activity.definition import registry as activities
from orchestrator.cli.checks.findings import Finding, problem, warning
from orchestrator.cli.checks.homes import used_queues
from orchestrator.cli.checks.places import listed
from orchestrator.model.options import DEFAULT_ACTIVITY_OPTIONS
from orchestrator.types import SECOND
from orchestrator.worker.bootsteps import tolerance_of

if TYPE_CHECKING:
    from celery import Celery

NETWORK_BROKERS = ("amqp", "pyamqp", "py-amqp", "redis", "rediss", "sentinel", "sqs")


def check_settings(app: Celery) -> list[Finding]:
    """Returns what is wrong with an app's settings; its modules are imported already."""
    return [finding for check in CHECKS for finding in check(app)]


def eager(app: Celery) -> Iterator[Finding]:
    """Tasks that run inside the call that sends them."""
    if app.conf.task_always_eager:
        yield problem(
            "task-always-eager",
            "task_always_eager is set: tasks run inside the call that sends them, so workflows are refused.",
            "Unset it; test workflows with orchestrator.testing.WorkflowEnvironment.",
        )


def accepted_content(app: Celery) -> Iterator[Finding]:
    """Messages that workers refuse."""
    if not {"json", "application/json"} & set(app.conf.accept_content or ()):
        yield problem(
            "accept-content",
            f"accept_content is {sorted(app.conf.accept_content or ())!r} and lacks json, the format of our messages: "
            "workers refuse to start.",
            "Add 'json' to accept_content; other formats may stay.",
        )


def protocol(app: Celery) -> Iterator[Finding]:
    """Messages without headers."""
    if app.conf.task_protocol == 1:
        yield problem(
            "task-protocol",
            "task_protocol is 1, whose messages have no headers: plain tasks called by workflows lose their context.",
            "Remove the setting; protocol 2 is Celery's default since 4.0.",
        )


def lost_connections(app: Celery) -> Iterator[Finding]:
    """The same task twice at once in one worker."""
    if _is_networked(app) and not app.conf.worker_cancel_long_running_tasks_on_connection_loss:
        yield warning(
            "connection-loss",
            "worker_cancel_long_running_tasks_on_connection_loss is off: when a worker loses its broker connection, a "
            "running late-acknowledged task goes on, and its message is run again beside it.",
            "Set app.conf.worker_cancel_long_running_tasks_on_connection_loss = True. Activities are fenced either "
            "way, so histories stay right; their effects may happen twice.",
        )


def long_late_tasks(app: Celery) -> Iterator[Finding]:
    """Plain tasks that hold a message longer than the broker waits."""
    tolerance = tolerance_of(app)
    if tolerance is None:
        return
    names = sorted(task.name for task in _plain_tasks(app) if task.acks_late and _longest(app, task) >= tolerance)
    if names:
        yield warning(
            "broker-tolerance",
            f"The broker waits {tolerance:g} s for an acknowledgement, and these late-acknowledged tasks have no shorter "
            f"time limit: {listed(names)}. Past it, {_past_tolerance(app)}.",
            "Give them a time_limit below that, set acks_late=False, or raise "
            + ("visibility_timeout in broker_transport_options." if _is_redis(app) else "RabbitMQ's consumer_timeout."),
        )


def short_visibility(app: Celery) -> Iterator[Finding]:
    """Redis hands out messages again that a worker has merely prefetched."""
    if not _is_redis(app):
        return
    visibility = tolerance_of(app) or 0
    longest = max((_start_to_close(name) for name in _our_activities()), default=0.0)
    if visibility < 60 or visibility < longest:
        yield warning(
            "visibility-timeout",
            f"visibility_timeout is {visibility:g} s, and activities may run for {longest:g} s: Redis hands a message out "
            "again after that time, also one that waits in a worker behind a long task.",
            "Set broker_transport_options['visibility_timeout'] above the longest activity, at least to 3600. A message "
            "that comes twice is recognised and dropped for activities, and run twice for plain late-acknowledged tasks.",
        )


def time_limits(app: Celery) -> Iterator[Finding]:
    """Activities that Celery kills before their own time-out."""
    limits = [value for value in (app.conf.task_time_limit, app.conf.task_soft_time_limit) if value]
    if not limits:
        return
    names = [name for name in _our_activities() if _start_to_close(name) > min(limits)]
    if names:
        yield warning(
            "time-limit",
            f"Celery's time limit of {min(limits):g} s ends activities that are allowed to run longer: {listed(names)}.",
            "Raise task_time_limit and task_soft_time_limit, or lower the start_to_close_timeout of these activities.",
        )


def pool(app: Celery) -> Iterator[Finding]:
    """Time-outs that nobody can enforce."""
    chosen = str(app.conf.worker_pool or "prefork")
    if chosen.startswith(("gevent", "eventlet")):
        yield problem(
            "pool",
            f"worker_pool is {chosen}, under which workers of workflows refuse to start.",
            "Use prefork, threads or solo.",
        )
    elif not chosen.startswith(("prefork", "processes")):
        yield warning(
            "pool",
            f"worker_pool is {chosen}: an activity past its start_to_close_timeout is given up and tried again, but its "
            "thread can't be killed and goes on.",
            "Use prefork for activities that may hang, or give the calls inside them time-outs of their own.",
        )


def missing_queues(app: Celery) -> Iterator[Finding]:
    """Queues that Celery refuses to send to."""
    if app.conf.task_create_missing_queues:
        return
    queues: Any = app.amqp.queues
    missing = sorted(queue for queue in used_queues(app) if queue not in queues)
    if missing:
        yield problem(
            "missing-queue",
            f"task_create_missing_queues is off, and task_queues lacks {listed(missing)}: messages to them can't be sent.",
            "Add them to task_queues.",
        )


def memory_broker(app: Celery) -> Iterator[Finding]:
    """Messages that never leave their process."""
    if _scheme(app) == "memory":
        yield warning(
            "memory-broker",
            "The broker is memory://, which lives inside one process: `celery worker` and `celery beat` beside it get "
            "nothing, and what other processes start or signal waits for the next sweep.",
            "Run everything in one process with `celery -A … workflow dev`, or set broker_url to RabbitMQ or Redis.",
        )


def sqlite_beside_network(app: Celery) -> Iterator[Finding]:
    """Workers on other machines with a database of their own."""
    url = str(app.conf.get("orchestrator_database_url") or "")
    if url.startswith("sqlite") and _is_networked(app):
        yield warning(
            "sqlite",
            f"Workflows are kept in SQLite ({url}), while the broker may serve other machines: a worker elsewhere would "
            "not see them.",
            "Set orchestrator_database_url to PostgreSQL before workers run on a second machine.",
        )


CHECKS: tuple[Callable[[Celery], Iterator[Finding]], ...] = (
    eager,
    accepted_content,
    protocol,
    lost_connections,
    long_late_tasks,
    short_visibility,
    time_limits,
    pool,
    missing_queues,
    memory_broker,
    sqlite_beside_network,
)
"""Everything that is looked at, in the order it is shown."""


def _our_activities() -> list[str]:
    return [definition.name for definition in activities.all() if not definition.legacy]


def _start_to_close(name: str) -> float:
    definition = activities.get(name)
    options = DEFAULT_ACTIVITY_OPTIONS if definition is None else definition.options.merged(DEFAULT_ACTIVITY_OPTIONS)
    return (options.timeout_us("start_to_close_timeout") or 0) / SECOND


def _plain_tasks(app: Celery) -> list[Any]:
    ours = set(_our_activities())
    return [
        task
        for name, task in app.tasks.items()
        if name not in ours and not name.startswith(("celery.", "orchestrator."))
    ]


def _longest(app: Celery, task: Any) -> float:
    limits = [task.time_limit, task.soft_time_limit, app.conf.task_time_limit, app.conf.task_soft_time_limit]
    return min((float(limit) for limit in limits if limit), default=float("inf"))


def _past_tolerance(app: Celery) -> str:
    if _is_redis(app):
        return "Redis hands the message out again and the task runs twice at once"
    return "RabbitMQ closes the channel: the worker exits and the task runs again"


def _scheme(app: Celery) -> str:
    return str(app.conf.broker_read_url or app.conf.broker_url or "amqp").partition(":")[0].partition("+")[0]


def _is_networked(app: Celery) -> bool:
    return _scheme(app) in NETWORK_BROKERS


def _is_redis(app: Celery) -> bool:
    return _scheme(app) in {"redis", "rediss", "sentinel"}
