"""Messages as the broker sees them, and a broker in trouble as the publisher sees it."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery
from kombu import Connection

from orchestrator.transport.celery import CeleryTransport
from orchestrator.transport.messages import RunActivity, WakeDecision
from tests.support.fixtures.own_servers import ServerFactory
from tests.support.ports import free_port
from tests.support.rabbitmq_server import RabbitMQServer
from tests.support.waiting import wait_until


def activity_message(**changes: Any) -> RunActivity:
    values: dict[str, Any] = {
        "run_id": "01900000-0000-7000-8000-000000000042",
        "workflow_id": "order/42 ü",
        "number": 3,
        "attempt": 2,
        "name": "charge",
        "queue": "payments",
        "nonce": "n1",
        "published_at": 1_700_000_000_000_000,
        "start_to_close_us": 30_000_000,
    }
    return RunActivity(**(values | changes))


WAKE = WakeDecision(
    run_id="01900000-0000-7000-8000-000000000042",
    workflow_id="order/42 ü",
    workflow_type="Fulfil",
    queue="orders",
    published_at=1_700_000_000_000_000,
)


@pytest.fixture
def make_transport() -> Iterator[Any]:
    made: list[CeleryTransport] = []

    def make(url: str, timeout: float = 5, **conf: Any) -> CeleryTransport:
        app = Celery("team", broker=url, set_as_current=False)
        app.conf.update(conf)
        made.append(CeleryTransport(app, publish_timeout=timedelta(seconds=timeout)))
        return made[-1]

    yield make
    for transport in made:
        transport.close()


def take(url: str, queue: str) -> Any:
    """Takes one message from a queue."""
    with Connection(url) as connection:
        channel = connection.channel()
        message = channel.basic_get(queue, no_ack=True)
        return (
            None if message is None else (channel.message_to_python(message) if isinstance(message, dict) else message)
        )


HOSTILE = {
    "task_serializer": "pickle",
    "accept_content": ["pickle", "json"],
    "task_default_delivery_mode": "transient",
    "task_ignore_result": False,
    "task_protocol": 1,
    "task_publish_retry": False,
    "result_backend": "cache+memory://",
}


def test_an_activity_message_says_everything_for_itself_whatever_the_apps_settings_are(
    make_transport: Any, rabbitmq_url: str
):
    transport = make_transport(rabbitmq_url, **HOSTILE)
    assert transport.publish([activity_message()]) == []
    message = take(rabbitmq_url, "payments")
    assert message.content_type == "application/json"
    assert message.properties["delivery_mode"] == 2
    assert "expiration" not in message.properties
    headers = message.headers
    assert (headers["task"], headers["shadow"]) == ("charge", "activity:charge")
    assert headers["id"] == "order/42:20:C3:BC/000000000042/charge:3.2"
    assert headers["ignore_result"] is True
    assert headers["argsrepr"] == "('order/42 ü',)"
    assert headers["orchestrator"] == {
        "run": "01900000-0000-7000-8000-000000000042",
        "number": 3,
        "attempt": 2,
        "nonce": "n1",
        "published_at": 1_700_000_000_000_000,
        "start_to_close_us": 30_000_000,
    }
    args, kwargs, _ = json.loads(message.body)
    assert (args, kwargs) == ([], {})


def test_a_wake_up_has_a_readable_name_and_an_id_of_its_own(make_transport: Any, rabbitmq_url: str):
    transport = make_transport(rabbitmq_url)
    assert transport.publish([WAKE, WAKE]) == []
    first, second = take(rabbitmq_url, "orders"), take(rabbitmq_url, "orders")
    assert first.headers["task"] == "orchestrator.decide"
    assert first.headers["shadow"] == "decide:Fulfil"
    assert first.headers["id"] != second.headers["id"]
    assert json.loads(first.body)[0] == [WAKE.run_id]


@pytest.mark.parametrize("broker", ["rabbitmq_url", "redis_url", "memory://"])
def test_the_depth_of_a_queue_is_told(make_transport: Any, request: pytest.FixtureRequest, broker: str):
    url = broker if broker.startswith("memory") else request.getfixturevalue(broker)
    transport = make_transport(url)
    # Names of its own: the in-process broker is one for the whole process.
    work, decisions = "depth-of-work", "depth-of-decisions"
    assert transport.depth(work) == 0
    attempts = [replace(activity_message(attempt=number), queue=work) for number in (1, 3)]
    transport.publish([*attempts, replace(WAKE, queue=decisions)])
    assert transport.depth(work) == 2
    assert transport.depth(decisions) == 1


def test_a_queue_that_was_deleted_is_declared_again(make_transport: Any, rabbitmq_url: str):
    transport = make_transport(rabbitmq_url)
    assert transport.publish([activity_message()]) == []
    with Connection(rabbitmq_url) as connection:
        connection.channel().queue_delete("payments")
    assert transport.publish([activity_message()]) == []
    assert take(rabbitmq_url, "payments") is not None


@pytest.mark.parametrize("scheme", ["amqp", "redis"])
def test_a_broker_that_refuses_returns_the_messages_at_once(make_transport: Any, scheme: str):
    transport = make_transport(f"{scheme}://127.0.0.1:{free_port()}//", timeout=2)
    began = time.monotonic()
    assert transport.publish([WAKE, activity_message()]) == [WAKE, activity_message()]
    assert transport.depth("orders") is None
    assert time.monotonic() - began < 6


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("scheme", ["amqp", "redis"])
def test_a_broker_that_does_not_answer_costs_the_timeout_and_no_threads(
    make_transport: Any, black_hole: int, scheme: str
):
    transport = make_transport(f"{scheme}://127.0.0.1:{black_hole}//", timeout=0.5)
    before = threading.active_count()
    for _ in range(4):
        began = time.monotonic()
        assert transport.publish([WAKE]) == [WAKE]
        assert time.monotonic() - began < 3
    transport.close()
    wait_until(lambda: threading.active_count() <= before, 15)


def test_a_memory_alarm_costs_the_timeout_and_is_got_over(
    make_transport: Any, own_rabbitmq: ServerFactory[RabbitMQServer]
):
    server = own_rabbitmq()
    transport = make_transport(server.url, timeout=3)
    assert transport.publish([activity_message()]) == []
    server.ctl("set_vm_memory_high_watermark", "0.000001")
    wait_until(lambda: transport.publish([WAKE]) == [WAKE], 30)
    began = time.monotonic()
    assert transport.publish([WAKE]) == [WAKE]
    assert time.monotonic() - began < 8
    server.ctl("set_vm_memory_high_watermark", "0.6")
    wait_until(lambda: transport.publish([activity_message()]) == [], 30)


def test_a_forked_child_publishes_on_a_connection_of_its_own(make_transport: Any, rabbitmq_url: str):
    transport = make_transport(rabbitmq_url)
    assert transport.publish([WAKE]) == []
    child = os.fork()
    if child == 0:
        os._exit(0 if transport.publish([WAKE]) == [] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert transport.publish([WAKE]) == []
    assert transport.depth("orders") == 3


def test_a_high_priority_is_urgent_on_both_brokers(make_transport: Any, redis_url: str):
    transport = make_transport(redis_url)
    for priority in (0, 9):
        transport.publish([activity_message(priority=priority, nonce=str(priority))])
    assert take(redis_url, "payments").headers["orchestrator"]["nonce"] == "9"


def test_queues_come_from_the_call_then_the_routes_then_the_default(make_transport: Any):
    transport = make_transport(
        "memory://", task_routes={"charge": {"queue": "routed"}, "orchestrator.decide": "deciders"}
    )
    assert transport.activity_queue("charge", "said") == "said"
    assert transport.activity_queue("charge", None) == "routed"
    assert transport.activity_queue("other", None) == "celery"
    assert transport.decision_queue(None) == "deciders"
    assert transport.decision_queue("orders") == "orders"


def test_a_queue_that_does_not_exist_and_may_not_be_made_is_logged_not_raised(
    make_transport: Any, caplog: pytest.LogCaptureFixture
):
    transport = make_transport("memory://", task_create_missing_queues=False)
    assert transport.publish([activity_message()]) == [activity_message()]
    assert "payments" in caplog.text
