"""The shop's own database: what its steps did to the world, written so that doing it twice can be seen.

``calls`` is append only and has no unique key: one row for each time a step's code began, whoever ran it.
``ledger`` holds the effects, such as money moved. Its idempotency key is unique, so an effect that is asked for
again under the same key is found instead of done again. With ``keyed=False`` the shop draws a fresh key for every
call, as code does that does not know idempotency keys: then a repeated call is a repeated effect, and counting
shows it.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

DATABASE_VARIABLE = "SHOP_DATABASE_URL"
KEYS_VARIABLE = "SHOP_KEYS"

metadata = sa.MetaData()

calls = sa.Table(
    "calls",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("order_id", sa.Text, nullable=False, index=True),
    sa.Column("step", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
)

ledger = sa.Table(
    "ledger",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("order_id", sa.Text, nullable=False, index=True),
    sa.Column("step", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("key", sa.Text, nullable=False, unique=True),
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of ``calls`` or ``ledger``; ``at`` is microseconds since the epoch, UTC, by the clock of ``pid``."""

    order_id: str
    step: str
    attempt: int
    pid: int
    at: int
    key: str


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What the shop counts: calls begun, effects done, and effects beyond the first of one step of one order."""

    calls: int
    effects: int
    doubles: int


class Shop:
    """The shop's database. Safe to use from many threads; after a fork the child opens connections of its own."""

    def __init__(
        self,
        url: str,
        *,
        keyed: bool = True,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
        draw_key: Callable[[], str] = lambda: uuid.uuid4().hex,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Open the database at ``url`` (an SQLAlchemy URL) and create its two tables when they are missing.

        Args:
            url: SQLite or PostgreSQL.
            keyed: False is the control case: effects get a fresh key for every call.
            clock: gives the instant, microseconds since the epoch.
            draw_key: gives the fresh keys of the control case.
            pause: waits so many seconds for an answer from outside; tests have no need to.
        """
        self._keyed = keyed
        self._clock = clock
        self._draw_key = draw_key
        self.pause = pause
        self._engine = _open(url)
        metadata.create_all(self._engine)
        _engines.add(self._engine)

    def record_call(self, *, order_id: str, step: str, attempt: int, key: str) -> None:
        """Note that a step began."""
        with self._engine.begin() as connection:
            connection.execute(calls.insert().values(self._row(order_id, step, attempt, key)))

    def apply_effect(self, *, order_id: str, step: str, attempt: int, key: str) -> bool:
        """Do the step's effect unless its key was used before; return whether this call did it."""
        row = self._row(order_id, step, attempt, key if self._keyed else self._draw_key())
        try:
            with self._engine.begin() as connection:
                connection.execute(ledger.insert().values(row))
        except sa.exc.IntegrityError:
            return False
        return True

    def calls(self) -> list[Entry]:
        """Return the calls in the order they were noted."""
        return self._entries(calls)

    def ledger(self) -> list[Entry]:
        """Return the effects in the order they were applied."""
        return self._entries(ledger)

    def tally(self) -> Tally:
        """Count calls, effects and doubled effects."""
        distinct = sa.select(ledger.c.order_id, ledger.c.step).distinct().subquery()
        with self._engine.connect() as connection:
            begun = connection.scalar(sa.select(sa.func.count()).select_from(calls)) or 0
            effects = connection.scalar(sa.select(sa.func.count()).select_from(ledger)) or 0
            once = connection.scalar(sa.select(sa.func.count()).select_from(distinct)) or 0
        return Tally(calls=begun, effects=effects, doubles=effects - once)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _row(self, order_id: str, step: str, attempt: int, key: str) -> dict[str, object]:
        return {
            "order_id": order_id,
            "step": step,
            "attempt": attempt,
            "key": key,
            "pid": os.getpid(),
            "at": self._clock(),
        }

    def _entries(self, table: sa.Table) -> list[Entry]:
        columns = [table.c[name] for name in ("order_id", "step", "attempt", "pid", "at", "key")]
        query = sa.select(*columns).order_by(table.c.id)
        with self._engine.connect() as connection:
            return [Entry(**row) for row in connection.execute(query).mappings()]


class _Process:
    """What this process uses, guarded by a lock since many threads may be the first to ask."""

    lock = threading.Lock()
    shop: Shop | None = None


def use_shop(shop: Shop | None) -> None:
    """Make ``shop`` the one that the steps of this process write to (None: the one the environment names)."""
    with _Process.lock:
        _Process.shop = shop


def current_shop() -> Shop:
    """Return the shop of this process: the one given to ``use_shop``, else the one at SHOP_DATABASE_URL.

    With SHOP_KEYS=random that one is the control case without idempotency keys.

    Raises:
        LookupError: when there is neither.
    """
    with _Process.lock:
        if _Process.shop is None:
            url = os.environ.get(DATABASE_VARIABLE)
            if not url:
                message = f"the shop has no database: set {DATABASE_VARIABLE}, for example to sqlite:///shop.db"
                raise LookupError(f"{message}, or call use_shop()")
            _Process.shop = Shop(url, keyed=os.environ.get(KEYS_VARIABLE) != "random")
        return _Process.shop


_engines: weakref.WeakSet[sa.Engine] = weakref.WeakSet()


def _forget_connections() -> None:
    # A connection shared with a forked child mixes up both sides' answers.
    for engine in list(_engines):
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_forget_connections)


def _open(url: str) -> sa.Engine:
    # SQLAlchemy reads a bare postgresql:// as psycopg 3; the project declares psycopg2.
    if url.startswith("postgresql://"):
        url = url.replace("postgresql://", "postgresql+psycopg2://", 1)
    engine = sa.create_engine(url)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _tune_sqlite)
    return engine


def _tune_sqlite(connection: object, _record: object) -> None:
    # Readers and writers in two processes; a killed process loses nothing, a power cut is no part of the sample.
    execute = connection.execute  # type: ignore[attr-defined]
    execute("PRAGMA busy_timeout = 30000")
    execute("PRAGMA journal_mode = WAL")
    execute("PRAGMA synchronous = NORMAL")
