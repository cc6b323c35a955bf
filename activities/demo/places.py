"""Where the demo keeps things, and how it takes all of them away again: files, databases, queues."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa
from kombu import Connection, Queue
from kombu.exceptions import OperationalError

from activities.demo.errors import DemoFailed
from activities.demo.settings import Kind, Options, ServerSettings
from activities.orders.apps import EMBEDDED_BROKER


@contextmanager
def places(options: Options) -> Iterator[dict[Kind, ServerSettings]]:
    """Make a place for each of the two ways, and remove both at the end, however it comes.

    Raises:
        DemoFailed: when the given broker or database server cannot be used.
    """
    if options.broker:
        _check_broker(options.broker)
    name = f"demo-{uuid.uuid4().hex[:8]}"
    directory = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    databases: list[str] = []
    settings: dict[Kind, ServerSettings] = {}
    try:
        for kind, short in ((Kind.WORKFLOWS, "workflows"), (Kind.CHAINS, "chains")):
            queue = f"{name}-{short}"
            if options.database:
                databases.append(_create_database(options.database, queue.replace("-", "_")))
            settings[kind] = ServerSettings(
                kind=kind,
                name=name,
                broker=options.broker or _own_broker(kind, directory),
                queue=queue,
                workflows_url=databases[-1] if options.database else f"sqlite:///{directory / short}.db",
                shop_url=databases[-1] if options.database else f"sqlite:///{directory / short}-shop.db",
                directory=str(directory),
                threads=options.threads,
            )
        yield settings
    finally:
        if options.broker:
            for place in settings.values():
                _delete_queues(place)
        for url in databases:
            _drop_database(options.database or "", url)
        shutil.rmtree(directory, ignore_errors=True)


def _own_broker(kind: Kind, directory: Path) -> str:
    # Workflows need no more of a broker than memory, since the truth is in the database. A chain's only truth is its
    # message, so to be fair the bare chains get a broker that keeps messages on disk.
    return EMBEDDED_BROKER if kind is Kind.WORKFLOWS else f"sqla+sqlite:///{directory / 'broker'}.db"


def _create_database(server: str, name: str) -> str:
    _administer(server, f'CREATE DATABASE "{name}"')
    return sa.make_url(server).set(database=name).render_as_string(hide_password=False)


def _drop_database(server: str, url: str) -> None:
    _administer(server, f'DROP DATABASE IF EXISTS "{sa.make_url(url).database}" WITH (FORCE)')


def _administer(server: str, statement: str) -> None:
    url = sa.make_url(server).set(drivername="postgresql+psycopg2")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    try:
        with engine.connect() as connection:
            connection.execute(sa.text(statement))
    except sa.exc.DBAPIError as error:
        raise DemoFailed(f"the database server {url!r} cannot be used: {error.orig}") from error


def _check_broker(broker: str) -> None:
    try:
        with Connection(broker, connect_timeout=3) as connection:
            connection.ensure_connection(max_retries=1, timeout=5)
    except (OSError, OperationalError) as error:
        raise DemoFailed(f"the broker {Connection(broker).as_uri()} cannot be used: {error}") from error


def _delete_queues(place: ServerSettings) -> None:
    with suppress(OSError), Connection(place.broker) as connection:
        for suffix in ("", ".payments", ".housekeeping"):
            Queue(place.queue + suffix, channel=connection.default_channel).delete()
