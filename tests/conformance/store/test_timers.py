"""A timer fires once: firing is deleting its row."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from orchestrator.store import timers
from orchestrator.store.database import Database
from tests.conformance.store.builders import put_run


def put(db: Database, *due: tuple[str, int, int]) -> None:
    db.run(lambda conn: timers.insert(conn, due), what="test")


def test_due_timers_are_popped_in_order_of_their_time(db: Database) -> None:
    put_run(db)
    put_run(db, "run-2")
    put(db, ("run-1", 1, 30), ("run-1", 2, 10), ("run-2", 1, 10), ("run-2", 2, 99))
    with db.write() as conn:
        assert timers.next_due(conn) == 10
        assert timers.pop_due(conn, 50, 2) == [("run-1", 2, 10), ("run-2", 1, 10)]
        assert timers.pop_due(conn, 50, 10) == [("run-1", 1, 30)]
        assert timers.pop_due(conn, 50, 10) == []
        assert timers.next_due(conn) == 99


def test_a_timer_is_not_due_before_its_time(db: Database) -> None:
    put_run(db)
    put(db, ("run-1", 1, 30))
    with db.write() as conn:
        assert timers.pop_due(conn, 29, 10) == []
        assert timers.pop_due(conn, 30, 10) == [("run-1", 1, 30)]


def test_a_timer_that_was_popped_and_rolled_back_is_still_there(db: Database) -> None:
    put_run(db)
    put(db, ("run-1", 1, 30))
    with db.read() as conn:
        assert timers.of_run(conn, "run-1") == [("run-1", 1, 30)]
    try:
        with db.write() as conn:
            timers.pop_due(conn, 50, 10)
            raise RuntimeError("the sweep dies")
    except RuntimeError:
        pass
    with db.read() as conn:
        assert timers.of_run(conn, "run-1") == [("run-1", 1, 30)]


def test_cancelled_timers_are_gone(db: Database) -> None:
    put_run(db)
    put(db, *(("run-1", number, 30) for number in range(1, 6)))
    with db.write() as conn:
        assert timers.delete(conn, "run-1", [1, 2, 9]) == 2
        assert timers.delete(conn, "run-1", []) == 0
        assert timers.delete_all(conn, "run-1") == 3
        assert timers.next_due(conn) is None


def test_four_sweeps_at_once_fire_each_timer_once(make_db: Callable[..., Database]) -> None:
    pools = [make_db() for _ in range(4)]
    put_run(pools[0])
    put(pools[0], *(("run-1", number, number % 7) for number in range(1, 1001)))

    def sweep(db: Database) -> list[tuple[str, int, int]]:
        fired = []
        while batch := db.run(lambda conn: timers.pop_due(conn, 10, 50), what="test"):
            fired += batch
        return fired

    with ThreadPoolExecutor(4) as threads:
        fired = [number for found in threads.map(sweep, pools) for _, number, _ in found]
    assert sorted(fired) == list(range(1, 1001))
