"""``workflow dev``: a worker of threads, beat and the sweep in one process."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.session import command

if TYPE_CHECKING:
    from celery import Celery

    from orchestrator.cli.session import Session

FAST_POLLING = 0.005
"""Seconds between two looks into an in-memory queue; Celery's own default of one second makes each step slow."""


@command("dev")
@click.option("--concurrency", type=click.IntRange(min=1), default=8, show_default=True, help="Worker threads.")
@click.option("--queues", "-Q", metavar="QUEUES", help="Comma-separated; default all that the app's code names.")
@click.option("--loglevel", default="INFO", show_default=True, metavar="LEVEL")
def dev_command(session: Session, /, *, concurrency: int, queues: str | None, loglevel: str) -> None:
    """Run everything in one process, to try workflows out: worker threads, beat and the sweep.

    It uses the app's own broker and database and brings the schema up by itself. With broker_url = "memory://"
    and no orchestrator_database_url it needs no server at all. Stop it with Ctrl-C; everything goes on when it is
    started again.
    """
    from orchestrator.cli.checks.homes import used_queues
    from orchestrator.cli.checks.places import broker_url, database_url
    from orchestrator.store import migrate

    app, durable = session.app, session.durable
    _prepare(app)
    engine = durable.engine()
    migrate.upgrade(engine.db)
    chosen = [queue for queue in (queues or "").split(",") if queue] or sorted(used_queues(app))
    told = {"broker": broker_url(app), "database": database_url(engine.db), "queues": chosen}
    if session.out.as_json:
        session.out.json(told)
    else:
        session.out.facts([("Broker", told["broker"]), ("Database", told["database"]), ("Queues", ", ".join(chosen))])
    with tempfile.TemporaryDirectory(prefix="orchestrator-dev-") as folder:
        beat = _start_beat(app, Path(folder))
        try:
            _work(app, chosen, concurrency, loglevel)
        finally:
            # It writes into the folder that goes away next.
            beat.stop()


def _prepare(app: Celery) -> None:
    if str(app.conf.broker_url or "").startswith("memory:"):
        options = dict(app.conf.broker_transport_options or {})
        options.setdefault("polling_interval", FAST_POLLING)
        app.conf.broker_transport_options = options


def _start_beat(app: Celery, folder: Path) -> Any:
    from celery.beat import EmbeddedService

    beat: Any = EmbeddedService(app, thread=True, schedule_filename=str(folder / "beat"))
    # As a process its ticks would never reach an in-memory broker.
    assert isinstance(beat, threading.Thread)
    beat.start()
    return beat


def _work(app: Celery, queues: list[str], concurrency: int, loglevel: str) -> None:
    from celery.worker import state

    worker: Any = app.Worker(
        pool="threads",
        concurrency=concurrency,
        queues=queues,
        loglevel=loglevel.upper(),
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    # Celery calls Ctrl-C a failure; here it is how one stops.
    if worker.exitcode and state.should_stop is None:
        raise click.exceptions.Exit(worker.exitcode)
