"""One server process of the demo: Celery worker threads, and beat in a thread of the same process.

It is started by the driver, reads its settings from the first line of its standard input, writes ``ready`` when it
takes work, and ends when its standard input does: a driver that is killed leaves no server behind.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from celery import Celery, signals
from celery.beat import EmbeddedService

from activities.demo.settings import LIVENESS_INTERVAL, LIVENESS_TIMEOUT, RESEND_AFTER, Kind, ServerSettings
from activities.orders.apps import make_app, queues_of
from activities.orders.effects import Shop, use_shop
from orchestrator import Orchestrator


def durable_app(settings: ServerSettings) -> tuple[Celery, Orchestrator]:
    """Return the app with workflows, as server and driver use it."""
    app = make_app(broker=settings.broker, queue=settings.queue)
    app.conf.update(
        orchestrator_database_url=settings.workflows_url,
        orchestrator_namespace=settings.name,
        orchestrator_liveness_timeout=LIVENESS_TIMEOUT,
        orchestrator_liveness_interval=LIVENESS_INTERVAL,
        orchestrator_resend_after=RESEND_AFTER,
    )
    return app, Orchestrator(app)


def bare_app(settings: ServerSettings) -> Celery:
    """Return the app that knows chains only."""
    return make_app(broker=settings.broker, queue=settings.queue, durable=False)


def serve(settings: ServerSettings) -> None:
    """Run worker and beat until the process ends."""
    use_shop(Shop(settings.shop_url))
    app = durable_app(settings)[0] if settings.kind is Kind.WORKFLOWS else bare_app(settings)
    app.conf.update(worker_hijack_root_logger=False, worker_redirect_stdouts=False)
    signals.worker_ready.connect(_say_ready, weak=False)
    beat = EmbeddedService(app, thread=True, schedule_filename=f"{settings.directory}/{settings.queue}.beat")
    assert isinstance(beat, threading.Thread)  # the other kind is a process, whose ticks an in-memory broker never sees
    beat.start()
    worker = app.Worker(
        pool="threads",
        concurrency=settings.threads,
        queues=queues_of(app),
        hostname=f"{settings.queue}@{os.uname().nodename}",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="WARNING",
        quiet=True,
    )
    worker.start()


def _say_ready(**_: Any) -> None:
    print("ready", flush=True)


def _end_with_the_driver() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Serve what the first line of standard input says."""
    settings = ServerSettings.model_validate_json(sys.stdin.readline())
    threading.Thread(target=_end_with_the_driver, daemon=True).start()
    serve(settings)


if __name__ == "__main__":
    main()
