"""Programs of ten steps in a row: a workflow beside a bare Celery chain, on the same worker, broker and machine.

    python -m benchmarks.steps                      # 30 programs, on servers of its own
    python -m benchmarks.steps --programs 300 --concurrency 4
    python -m benchmarks.steps --database postgresql://… --broker amqp://…

*Per step* is the time from the beginning of one step to the beginning of the next, one program at a time.
*Throughput* counts steps from the first call to the last step, all programs started at once. A step does
nothing but note the time. The database flushes each commit to the disk, as in production.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.support import schema
from tests.support.celery_worker import CeleryWorker
from tests.support.postgres_server import PostgresServer
from tests.support.rabbitmq_server import RabbitMQServer
from tests.support.waiting import wait_until

STEPS = 10
SAFE = {"fsync": "on", "full_page_writes": "on"}
PATIENCE = 600.0
"""Seconds after which a measurement that does not end is given up."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one way of running programs took; seconds, and steps per second."""

    p50: float
    p95: float
    throughput: float


class Log:
    """The beginnings of steps, as the worker notes them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def steps(self, prefix: str) -> dict[str, list[float]]:
        """Beginnings by program, of programs whose name starts so."""
        found = defaultdict(list)
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            name, _, at = line.partition(" ")
            if name.startswith(prefix):
                found[name].append(float(at))
        return found

    def wait(self, prefix: str, programs: int) -> dict[str, list[float]]:
        """Waits until so many programs have made all their steps."""
        wait_until(
            lambda: sum(map(len, self.steps(prefix).values())) >= programs * STEPS,
            PATIENCE,
            interval=0.01 if programs == 1 else 0.1,
            message=f"all steps of {prefix}",
        )
        return self.steps(prefix)


def measure(log: Log, kind: str, start: Callable[[str], object], programs: int, runs: int) -> Figures:
    """Measures one way of running programs; `start` starts the program of a name."""
    for warm in range(2):
        start(f"{kind}-warm{warm}-")
        log.wait(f"{kind}-warm{warm}-", 1)
    gaps: list[float] = []
    for run in range(runs):
        start(f"{kind}-one{run}-")
        (times,) = log.wait(f"{kind}-one{run}-", 1).values()
        gaps += [later - earlier for earlier, later in pairwise(times)]
    began = time.time()
    for number in range(programs):
        start(f"{kind}-many{number}-")
    ended = max(max(times) for times in log.wait(f"{kind}-many", programs).values())
    return Figures(
        p50=statistics.median(gaps),
        p95=statistics.quantiles(gaps, n=20)[-1],
        throughput=programs * STEPS / (ended - began),
    )


@contextmanager
def places(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """URLs of the broker and of the migrated database: those that were given, else servers for this run."""
    with ExitStack() as stack:

        def own(server: PostgresServer | RabbitMQServer) -> str:
            stack.callback(server.close)
            server.start()
            return server.url

        database = arguments.database or own(PostgresServer(SAFE))
        schema.migrate(database)
        yield arguments.broker or own(RabbitMQServer()), database


def run(arguments: argparse.Namespace, broker: str, database: str, folder: Path) -> dict[str, Figures]:
    """Measures both ways, one after the other, on one worker."""
    log = Log(folder / "steps.log")
    env = {"BROKER_URL": broker, "DATABASE_URL": database, "BENCH_LOG": str(log.path)}
    os.environ.update(env)
    from celery import chain

    from benchmarks.steps_app import app, bench_bare, bench_flow, durable

    worker = CeleryWorker(
        "benchmarks.steps_app",
        queues=["bench"],
        concurrency=arguments.concurrency,
        env=env,
        log_path=folder / "worker.log",
    )
    try:
        worker.start()
        worker.wait_ready(120)

        def bare(name: str) -> None:
            first, *others = [bench_bare.s(0, name), *[bench_bare.s(name) for _ in range(STEPS - 1)]]
            chain(first, *others).apply_async()

        def durably(name: str) -> None:
            durable.start(bench_flow, name, id=name)

        size = (arguments.programs, arguments.runs)
        return {
            "bare Celery chain": measure(log, "bare", bare, *size),
            "workflow (inline off)": measure(log, "flow", durably, *size),
        }
    finally:
        worker.close()
        durable.close()
        app.close()


def table(arguments: argparse.Namespace, figures: dict[str, Figures]) -> Table:
    """The figures as they are printed."""
    title = f"{arguments.programs} x {STEPS} steps, prefork worker with {arguments.concurrency} processes"
    made = Table(title=title)
    for head in ("", "p50 per step", "p95 per step", "throughput"):
        made.add_column(head, justify="left" if not head else "right")
    for name, row in figures.items():
        made.add_row(name, f"{row.p50 * 1e3:.1f} ms", f"{row.p95 * 1e3:.1f} ms", f"{row.throughput:.0f} steps/s")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=int, default=30, help="started at once, for the throughput (30)")
    parser.add_argument("--runs", type=int, default=10, help="one at a time, for the time per step (10)")
    parser.add_argument("--concurrency", type=int, default=2, help="processes of the worker (2)")
    parser.add_argument("--database", default="", help="a PostgreSQL database to use; it is migrated")
    parser.add_argument("--broker", default="", help="a broker to use")
    arguments = parser.parse_args()
    with places(arguments) as (broker, database), tempfile.TemporaryDirectory() as folder:
        figures = run(arguments, broker, database, Path(folder))
    Console().print(table(arguments, figures))


if __name__ == "__main__":
    main()
