"""``python -m activities.demo``: see ``--help``."""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import closing
from types import FrameType

from kombu import Connection
from rich.console import Console

from activities.demo.driver import Story
from activities.demo.errors import DemoFailed
from activities.demo.places import places
from activities.demo.report import final_table
from activities.demo.settings import Kind, Options
from activities.demo.sides import ChainSide
from activities.demo.view import view_for
from activities.demo.workflow_side import WorkflowSide
from activities.orders.reading import Reading, read_orders

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def parse(arguments: list[str]) -> Options:
    """Return the options that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m activities.demo", description="Orders that survive a killed server, in under a minute."
    )
    parser.add_argument(
        "--orders", type=int, default=40, help="how many orders of the sample file to fulfil (2 to 240, default 40)"
    )
    parser.add_argument("--broker", help="a broker's URL, such as amqp://localhost (default: in memory)")
    parser.add_argument(
        "--database",
        help="a PostgreSQL server's URL, such as postgresql://localhost/postgres; the demo makes databases of its own "
        "there, and drops them (default: SQLite files)",
    )
    given = parser.parse_args(arguments)
    if not 2 <= given.orders <= 240:
        parser.error("--orders: give a number from 2 to 240")
    if given.database and not given.database.startswith("postgresql"):
        parser.error("--database: give the URL of a PostgreSQL server, or leave it out for SQLite files")
    return Options(orders=given.orders, broker=given.broker, database=given.database)


def run(options: Options, console: Console) -> int:
    """Run the demo and return its exit code: 0 when every workflow ended and no effect was applied twice."""
    reading = read_orders()
    console.print(_about(reading, options), highlight=False, soft_wrap=True)
    with (
        places(options) as settings,
        closing(WorkflowSide(settings[Kind.WORKFLOWS])) as ours,
        closing(ChainSide(settings[Kind.CHAINS])) as bare,
        view_for(console) as view,
    ):
        story = Story(ours, bare, reading.orders[: options.orders], view)
        story.play()
        accounts, picture = story.accounts(), story.pictures(min(console.width, 120) if console.is_terminal else 110)
    console.print()
    for line in picture:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print()
    console.print(final_table(accounts))
    return 0 if accounts[0].stuck == 0 and accounts[0].tally.doubles == 0 else 1


def _about(reading: Reading, options: Options) -> str:
    examples = "; ".join(f"line {rejected.line}: {rejected.reason}" for rejected in reading.rejected[4:7])
    # Without its password.
    broker = Connection(options.broker).as_uri() if options.broker else "in memory (bare chains: on disk)"
    return (
        f"orders.csv: {len(reading.orders)} orders, {len(reading.rejected)} rows rejected ({examples}; …).\n"
        f"The first {options.orders} orders are fulfilled twice: as workflows, and as bare Celery chains. "
        f"Broker: {broker}. "
        f"Database: {'PostgreSQL' if options.database else 'SQLite files'}."
    )


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    # Once is enough: another Ctrl-C must not interrupt the tidying up.
    for number in _INTERRUPTIONS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    """Run the demo; Ctrl-C, SIGTERM and SIGHUP end it and leave nothing behind."""
    options = parse(sys.argv[1:])
    for number in _INTERRUPTIONS:
        signal.signal(number, _interrupt)
    console = Console()
    try:
        return run(options, console)
    except KeyboardInterrupt:
        console.print("Interrupted; everything the demo made was removed.")
        return 130
    except DemoFailed as error:
        console.print(f"The demo failed: {error}", markup=False, highlight=False)
        return 1


if __name__ == "__main__":
    sys.exit(main())
