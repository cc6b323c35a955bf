"""What is no bad input: ids and names with slashes, quotes, spaces, emoji and the like are kept as they were given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Celery, _state, signals
from celery.contrib.testing.worker import start_worker

from orchestrator import Orchestrator, activity, workflow
from orchestrator.activity.definition import registry as activities
from orchestrator.client import WorkflowClient
from orchestrator.errors import SignalConflict, WorkflowAlreadyStarted, WorkflowNotFound
from orchestrator.model.names import TASK_ID_LIMIT, task_id_for
from orchestrator.model.records import RunStatus
from orchestrator.runtime.registry import default_registry
from orchestrator.testing import WorkflowEnvironment
from tests.acceptance.bad_input import flows
from tests.acceptance.bad_input.cases import refuse
from tests.conformance.engine.world import World
from tests.support.celery_worker import logging_left_alone
from tests.support.fixtures.processes import WorkerFactory

IDS = [
    *("a/b/c", "/a", "../../etc/passwd", "a\\b", "C:\\orders", "it's \"quoted\"", "`id`", "$(id)", "%s %(x)s {} {0}", "';--"),
    *("a%2Fb", "a:2Fb", "a#1", "?x=1&y=2", "a+b", "a@b", "*", "#", "a.b", "[link=x]y", "<b>&amp;</b>"),
    *("two  inner  spaces", "a\u00a0b", "a\u3000b", "-", "--help", "null", "None", "0", "true", "[]", '"', "'"),
    *("🧾", "👩\u200d👩\u200d👧", "🏳️\u200d🌈", "𠜎𡃁", "\uffff", "\ufffd", "\U0010ffff", "a\u200bb", "a\u00adb", "\ufeffa"),
    *("مرحبا بالعالم", "שלום", "\u202enpj.exe", "\u2066a\u2069", "\u00e9", "e\u0301", "\u00c5", "\u212b", "A\u030a"),
    *("\uac00", "\u1100\u1161", "ß", "ss", "İ", "i\u0307", "I", "i", "ı", "\ufb01", "fi", "²", "2", "\u03a9", "\u2126"),
    *("k", "K", "\u212a"),
    *("x" * 255, "é" * 127 + "x", "💰" * 63 + "abc", "/" * 255, "'" * 255),
]  # fmt: skip
"""All different: a database that folds case, normalises Unicode or trims would make two of them one."""


@workflow.defn(name="bad.listening")
async def listening(signal: str) -> tuple[str, str]:
    """Waits for the signal of a name, and returns its own id and what was sent."""
    value = await workflow.wait_for_signal(signal, str)
    return workflow.info().workflow_id, value


@pytest.fixture
def durable(database_url: str) -> Iterator[WorkflowClient]:
    world = World(database_url, default_registry())
    yield WorkflowClient(lambda: world.engine, sleep=lambda _: world.work())
    world.db.dispose()


def test_the_samples_are_different_and_at_most_255_bytes() -> None:
    assert len(set(IDS)) == len(IDS)
    assert len({unicodedata.normalize("NFKC", id_).casefold() for id_ in IDS}) < len(IDS) - 10
    assert {len(id_.encode()) for id_ in IDS if len(id_.encode()) > 200} == {255}


def test_ids_and_signal_names_survive_everything_that_is_done_with_them(durable: WorkflowClient) -> None:
    handles = {id_: durable.start(listening, id_, id=id_, request_id=id_, memo={id_: id_}) for id_ in IDS}
    assert len({handle.run_id for handle in handles.values()}) == len(IDS)
    for id_, handle in handles.items():
        assert (handle.id, handle.created) == (id_, True)
        assert durable.start(listening, id_, id=id_, request_id=id_).run_id == handle.run_id
        assert handle.signal(id_, id_, signal_id=id_).stored
        assert not durable.get_handle(id_).signal(id_, id_, signal_id=id_).stored
        with pytest.raises(SignalConflict) as caught:
            handle.signal(id_, "other", signal_id=id_)
        assert caught.value.run_id == handle.run_id
    for id_ in IDS:
        check_answers(durable, id_)
    assert sorted(item.id for item in durable.list(limit=1000).items) == sorted(IDS)


def check_answers(durable: WorkflowClient, id_: str) -> None:
    """Checks what the client tells of one of the workflows, found by its id alone."""
    found = durable.get_handle(id_)
    assert found.result(timeout=30) == (id_, id_)
    described = found.describe()
    assert (described.id, described.input, described.memo) == (id_, [id_], {id_: id_})
    assert [item.id for item in durable.list(workflow_id=id_).items] == [id_]
    waited, received = (
        found.history().events[1:3]
        if found.history().events[0].kind == "RunStarted"
        else (None, found.history().events[0])
    )
    assert (received.kind, received.payload) == ("SignalReceived", [id_])
    assert (received.attributes["name"], received.attributes["signal_id"]) == (id_, id_)
    assert waited is None or waited.attributes["name"] == id_
    with pytest.raises(WorkflowAlreadyStarted) as caught:
        durable.start(flows.echo, "a", id=id_)
    assert caught.value.workflow_id == id_


def test_the_255th_byte_is_the_last(durable: WorkflowClient) -> None:
    for name in ("id", "request_id", "queue"):
        for longest in ("x" * 255, "é" * 127 + "x", "💰" * 63 + "abc"):
            durable.start(flows.echo, "a", **{name: longest})
            refuse(name, lambda name=name, longest=longest: durable.start(flows.echo, "a", **{name: longest + "x"}))  # type: ignore[misc]
    with pytest.raises(WorkflowNotFound):
        durable.get_handle("é" * 127 + "y").describe()


def test_a_reason_keeps_its_lines_and_ten_thousand_bytes(durable: WorkflowClient) -> None:
    for reason in ("", " on\nmany\r\n\tlines ", "💰" * 2500, "\u202e'\"\\"):
        handle = durable.start(flows.waiter)
        handle.terminate(reason)
        described = handle.describe()
        assert (described.status, described.close_reason) == (RunStatus.TERMINATED, reason)


@pytest.mark.parametrize("name", ["зарплата/💰 'x'", "a b", "x" * 255, "é" * 127 + "x", "-", "celery"])
def test_names_of_types_handlers_and_activities_are_kept_too(name: str) -> None:
    with default_registry().scope(), activities.scope():
        check_names(name)


def check_names(name: str) -> None:
    """Gives one name to a type, its queue, its handlers and an activity, and uses all of them."""

    @activity.defn(name=name, queue=name)
    def told(value: str) -> str:
        return f"{activity.info().activity} {value}"

    @workflow.defn(name=name, queue=name)
    class Told:
        def __init__(self) -> None:
            self.value = ""

        @workflow.run
        async def run(self) -> str:
            await workflow.wait_condition(lambda: self.value)
            return await workflow.execute_activity(name, self.value, queue=name)  # type: ignore[no-any-return]

        @workflow.signal(name=name)
        def tell(self, value: str) -> None:
            self.value = value

        @workflow.query(name=name)
        def ask(self) -> str:
            return self.value

    with WorkflowEnvironment() as env:
        handle = env.start(Told.run)
        assert (handle.describe().type, handle.describe().queue) == (name, name)
        handle.signal(name, "a")
        assert handle.query(name) == "a"
        assert handle.result() == f"{name} a"
        assert [(call.activity, call.queue) for call in env.calls(name)] == [(name, name)]


# --- through Celery ---------------------------------------------------------------------------------


def original(escaped: str) -> bytes:
    """Returns the UTF-8 bytes that a task id holds in escaped form."""
    return re.sub(rb":([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), escaped.encode())


def test_a_task_id_is_plain_text_tells_the_id_and_is_never_used_twice() -> None:
    run_id = "0198c0de-0000-7000-8000-0123456789ab"
    task_ids = [task_id_for(id_, run_id, "charge", 1, 1) for id_ in IDS]
    assert len(set(task_ids)) == len(IDS)
    for id_, task_id in zip(IDS, task_ids, strict=True):
        assert re.fullmatch(r"[A-Za-z0-9._:/-]+", task_id)
        assert len(task_id) <= TASK_ID_LIMIT
        head = task_id.rpartition("/0123456789ab/")[0]
        cut = re.search(r"-[0-9a-f]{8}$", head) is not None
        assert original(head) == id_.encode() or (cut and id_.encode().startswith(original(head[:-9])))


def check_the_ids_that_arrived(durable: Orchestrator) -> None:
    """Runs a workflow of each id to its end, and checks what its activity was told."""
    handles = [durable.start(flows.through_celery, id=id_) for id_ in IDS]
    results = [handle.result(timeout=60) for handle in handles]
    for handle, (workflow_id, task_id, key) in zip(handles, results, strict=True):
        assert workflow_id == handle.id
        assert key == f"{handle.run_id}/1"
        assert task_id == task_id_for(handle.id, handle.run_id or "", flows.who.name, 1, 1)
    assert len({task_id for _, task_id, _ in results}) == len(IDS)


@pytest.fixture
def make_app() -> Iterator[Callable[[str, str], Orchestrator]]:
    """A factory of apps by broker and database; the process's current app stays what it is."""
    state: Any = _state
    before, made = (state.get_current_app(), state.default_app), []

    def make(broker: str, database: str) -> Orchestrator:
        app = Celery("exact", broker=broker, set_as_current=False)
        app.conf.orchestrator_database_url = database
        if broker == "memory://":
            app.conf.broker_transport_options = {"polling_interval": 0.005}
        made.append(Orchestrator(app))
        return made[-1]

    yield make
    for durable in made:
        durable.close()
        durable.app.close()
    state._set_current_app(before[0])
    state.set_default_app(before[1])


def test_ids_reach_activities_through_a_broker_in_memory_and_sqlite(
    make_app: Callable[[str, str], Orchestrator], sqlite_url: str
) -> None:
    durable = make_app("memory://", sqlite_url)
    queues = ["celery", flows.ODD_QUEUE]
    options: dict[str, Any] = {"pool": "threads", "concurrency": 2, "perform_ping_check": False, "queues": queues}
    with logging_left_alone(), start_worker(durable.app, **options) as worker:
        check_the_ids_that_arrived(durable)
    # The worker of Celery's own test kit does not send it.
    signals.worker_shutdown.send(sender=worker)


def test_ids_reach_activities_through_rabbitmq_and_postgresql(
    make_app: Callable[[str, str], Orchestrator],
    rabbitmq_url: str,
    postgres_url: str,
    celery_worker_process: WorkerFactory,
) -> None:
    env = {"BROKER_URL": rabbitmq_url, "DATABASE_URL": postgres_url}
    queues = ["celery", flows.ODD_QUEUE]
    celery_worker_process("tests.acceptance.bad_input.celery_app", pool="threads", queues=queues, env=env)
    check_the_ids_that_arrived(make_app(rabbitmq_url, postgres_url))
