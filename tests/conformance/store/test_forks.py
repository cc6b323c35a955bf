"""A forked child forgets its parent's connections by itself, and leaves them unharmed."""

import os
import threading
from collections.abc import Callable

from orchestrator.store.database import Database
from tests.conformance.store.builders import get_run, put_run


def in_a_child(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_parent_and_child_go_on_with_connections_of_their_own(db: Database) -> None:
    put_run(db, "before")

    def child() -> None:
        assert get_run(db, "before").run_id == "before"
        put_run(db, "child")

    with db.read() as conn:
        assert in_a_child(child) == 0
        assert conn.exec_driver_sql("SELECT 1").scalar() == 1
    put_run(db, "after")
    assert get_run(db, "child").run_id == "child"


def test_a_child_does_not_wait_for_locks_that_its_parents_threads_held(db: Database) -> None:
    put_run(db)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with db.lock_run("run-1") as lock:
            assert lock is not None
            inside.set()
            leave.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    assert inside.wait(10)
    code = in_a_child(lambda: put_run(db, "child"))
    leave.set()
    holder.join(10)
    assert code == 0


def test_a_child_that_ends_leaves_the_parents_transaction_alone(db: Database) -> None:
    put_run(db)
    with db.lock_run("run-1") as lock:
        assert lock is not None
        conn = lock.connection()
        assert in_a_child(db.dispose) == 0
        assert conn.exec_driver_sql("SELECT 1").scalar() == 1
        lock.commit()
    put_run(db, "after")
