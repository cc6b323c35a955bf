"""What Flower shows of a workflow: the task list made of the events that it listens to."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from celery import Celery
from celery.events.state import State, Task

from tests.acceptance.team_apps.conftest import Team
from tests.support.waiting import wait_until


@contextmanager
def watching(app: Celery) -> Iterator[State]:
    """Listens to the events of an app as Flower does: the state it keeps of tasks and workers."""
    state = State()
    stop = threading.Event()
    listening = threading.Event()

    def listen() -> None:
        with app.connection_for_read() as connection:
            receiver = app.events.Receiver(connection, handlers={"*": state.event})
            with receiver.consumer_context() as (drained, _, _):
                listening.set()
                while not stop.is_set():
                    with suppress(TimeoutError):
                        drained.drain_events(timeout=0.2)

    thread = threading.Thread(target=listen, name="events")
    thread.start()
    try:
        assert listening.wait(10)
        yield state
    finally:
        stop.set()
        thread.join(10)


def row(task: Task) -> str:
    """A row of Flower's task list: name, id, arguments, state; what differs from run to run is a letter."""
    run = re.sub(r"(?<=/)[0-9a-f]{12}(?=/)", "RUN", task.uuid)
    return f"{task.name} | {re.sub('decide:[0-9.]+', 'decide:N', run)} | {task.args} | {task.kwargs} | {task.state}"


LIST = """\
activity:ta_charge | order-42/RUN/ta_charge:2.1 | ('order-42',) | {} | SUCCESS
activity:ta_reserve | order-42/RUN/ta_reserve:1.1 | ('order-42',) | {} | SUCCESS
decide:ta_fulfil | order-42/RUN/decide:N | ('order-42',) | {} | SUCCESS
"""


def test_the_task_list_of_a_workflow_reads_as_its_steps(make_team: Callable[..., Team]):
    team = make_team()
    with watching(team.durable.app) as state:
        team.worker(args=["-E"])
        team.start("order-42").result(timeout=30)

        def listed() -> str:
            tasks = [task for task in state.tasks.values() if task.name and "sweep" not in task.name]
            rows = {row(task) for task in tasks}
            return "".join(f"{line}\n" for line in sorted(rows))

        wait_until(lambda: listed() == LIST, 15, message=listed)
