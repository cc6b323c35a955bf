"""Our parts of a worker's start and stop, as Celery's bootsteps.

The worker's step comes before the consumer: what can't work is refused with the reason, the schema is
checked, the worker signs life, and its children inherit its identity. The consumer's step comes after
Celery has built the tasks' tracers, again after every reconnection.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import billiard
from celery import Celery, bootsteps, signals

from orchestrator.activity.context import note_worker_shutdown
from orchestrator.activity.tasks import SharedActivity
from orchestrator.errors import ConfigurationError, Unavailable
from orchestrator.store import migrate
from orchestrator.store.database import Database
from orchestrator.worker import identity, request, tracing
from orchestrator.worker.binding import engine_of, is_bound
from orchestrator.worker.housekeeping import Housekeeping, WorkerFacts
from orchestrator.worker.queues import housekeeping_queue

logger = logging.getLogger(__name__)

AMQP_TOLERANCE = 900.0
"""Seconds that RabbitMQ waits for an acknowledgement before it closes the channel: the least of its defaults."""
REDIS_TOLERANCE = 3600.0
"""Seconds after which Redis hands an unacknowledged message out again, unless ``visibility_timeout`` says otherwise."""


class HousekeepingStep(bootsteps.StartStopStep):
    """Prepares a worker for workflows and starts its housekeeping."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        app: Celery = worker.app
        refuse_what_cannot_work(app, worker)
        self._engine = engine_of(app)
        check_database(self._engine.db)
        identity.renew()
        self._housekeeping = Housekeeping(self._engine, _facts_about(app, worker))
        worker.orchestrator_housekeeping = self._housekeeping
        request.install(app, self._housekeeping.report_gone, tolerance_of(app))
        app.amqp.queues.select_add(housekeeping_queue(app))

    def start(self, worker: Any) -> None:  # noqa: ARG002 - Celery's interface
        note_worker_shutdown(stopping=False)
        self._housekeeping.start()

    def close(self, worker: Any) -> None:  # noqa: ARG002 - Celery's interface
        note_worker_shutdown(stopping=True)
        self._housekeeping.begin_shutdown()

    def stop(self, worker: Any) -> None:
        """Nothing: the pool still finishes its tasks, so the signs of life go on until the very end."""

    def terminate(self, worker: Any) -> None:
        self._housekeeping.note_interruption()
        self.close(worker)


class TracingStep(bootsteps.StartStopStep):
    """Puts the claim around the tracers, in pools that run tasks in the worker's own process."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, consumer: Any) -> None:
        tracing.wrap_all(consumer.app)


@signals.worker_process_init.connect
def _wrap_in_child(**_: Any) -> None:
    """Puts the claim around the tracers in a prefork child, which has just built them."""
    from celery import current_app

    app: Celery = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001
    if is_bound(app):
        tracing.wrap_all(app)


@signals.worker_shutdown.connect
def _sign_off(sender: Any = None, **_: Any) -> None:
    """Ends housekeeping after everything else has stopped."""
    housekeeping: Housekeeping | None = getattr(sender, "orchestrator_housekeeping", None)
    if housekeeping is not None:
        sender.orchestrator_housekeeping = None
        housekeeping.stop()
        note_worker_shutdown(stopping=False)


def refuse_what_cannot_work(app: Celery, worker: Any) -> None:
    """Refuses pools and settings under which workflows would hang or be lost, with the reason.

    Raises:
        ConfigurationError: One of them is in use.
    """
    pool = worker.pool_cls if isinstance(worker.pool_cls, str) else worker.pool_cls.__module__
    if pool.endswith(("gevent", "eventlet")):
        raise ConfigurationError(
            "The gevent and eventlet pools can't run workflows: workflow code has an event loop of its own per thread, "
            "and a row lock held by one greenlet stops all others. Start the worker with -P prefork, threads or solo."
        )
    spawned = worker.pool_start_method != "fork" or os.environ.get("FORKED_BY_MULTIPROCESSING")
    if pool.endswith("prefork") and (spawned or billiard.get_start_method() != "fork"):
        raise ConfigurationError(
            "Pool processes that are spawned do not inherit the worker's identity and definitions. Start the worker "
            "with -P threads or -P solo, or on a platform that forks."
        )
    if not {"json", "application/json"} & set(app.conf.accept_content or ()):
        raise ConfigurationError(
            "accept_content lacks 'json', the format of all messages of workflows; add it, other formats may stay."
        )
    for task in app.tasks.values():
        if isinstance(getattr(type(task), "_decorated_fun", None), SharedActivity):
            raise ConfigurationError(
                f"{task.name!r} is an @activity.defn under an @app.task. An activity is a Celery task already: remove "
                "@app.task, or remove @activity.defn and call the task through activity.of(task)."
            )


def check_database(db: Database) -> None:
    """Makes sure that the database is there and its schema is the one this version needs.

    Raises:
        SchemaOutdated: The schema is not; the message says what to run.
        Unavailable: The database can't be reached.
    """
    try:
        migrate.check(db)
    except Unavailable as error:
        raise Unavailable(
            f"The worker can't reach its database {db!r}, so it does not start. Check that the server is up, that the "
            f"database exists, and orchestrator_database_url. {error}"
        ) from None


def tolerance_of(app: Celery) -> float | None:
    """Returns how many seconds the broker leaves a message unacknowledged; None where it waits for ever."""
    url = str(app.conf.broker_read_url or app.conf.broker_url or "")
    options = app.conf.broker_transport_options or {}
    if url.startswith(("amqp", "pyamqp", "py-amqp")):
        return AMQP_TOLERANCE
    if url.startswith(("redis", "rediss", "sentinel")):
        return float(options.get("visibility_timeout", REDIS_TOLERANCE))
    return None


def _facts_about(app: Celery, worker: Any) -> WorkerFacts:
    prefork = worker.pool_cls.__module__.endswith("prefork")

    def pids() -> list[int]:
        return [os.getpid(), *(_children(worker) if prefork else ())]

    return WorkerFacts(
        hostname=worker.hostname,
        queues=lambda: list(app.amqp.queues.consume_from),
        pids=pids,
        tasks=sorted(name for name in app.tasks if not name.startswith("celery.")),
        has_children=prefork,
    )


def _children(worker: Any) -> list[int]:
    pool = getattr(worker.pool, "_pool", None)
    return [process.pid for process in list(getattr(pool, "_pool", None) or ()) if process.pid]


def install(app: Celery) -> None:
    """Adds our steps to the workers of an app."""
    app.steps["worker"].add(HousekeepingStep)
    app.steps["consumer"].add(TracingStep)


__all__ = ["HousekeepingStep", "TracingStep", "install", "refuse_what_cannot_work", "tolerance_of"]
