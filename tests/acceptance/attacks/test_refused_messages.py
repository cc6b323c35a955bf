"""One message that the broker refuses for good, in a batch with others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from celery import Celery
from kombu import Connection, Queue

from orchestrator.transport.celery import CeleryTransport
from orchestrator.transport.messages import RunActivity


def message(queue: str, number: int) -> RunActivity:
    return RunActivity(
        run_id="01900000-0000-7000-8000-000000000042",
        workflow_id="w",
        number=number,
        attempt=1,
        name="charge",
        queue=queue,
        nonce=f"n{number}",
        published_at=1_700_000_000_000_000,
    )


@pytest.fixture
def transport(rabbitmq_url: str) -> Iterator[CeleryTransport]:
    app = Celery("team", broker=rabbitmq_url, set_as_current=False)
    made = CeleryTransport(app, publish_timeout=timedelta(seconds=10))
    yield made
    made.close()


def ready(url: str, queue: str) -> int:
    with Connection(url) as connection:
        return int(connection.channel().queue_declare(queue, passive=True).message_count)


def declare(url: str, queue: Queue) -> None:
    with Connection(url) as connection:
        queue(connection.channel()).declare()


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(Queue("bad", queue_arguments={"x-max-priority": 5}), id="declared with other arguments"),
        pytest.param(Queue("bad", queue_arguments={"x-max-length": 0, "x-overflow": "reject-publish"}), id="full"),
        pytest.param(None, id="reserved name"),
    ],
)
def test_a_message_whose_queue_refuses_it_keeps_no_other_message_back(
    transport: CeleryTransport, rabbitmq_url: str, bad: Queue | None
) -> None:
    if bad is not None:
        declare(rabbitmq_url, bad)
    name = "amq.forbidden" if bad is None else "bad"
    batch = [message("good", 1), message(name, 2), message("good", 3), message(name, 4), message("good", 5)]
    assert transport.publish(batch) == [batch[1], batch[3]]
    assert ready(rabbitmq_url, "good") == 3
    assert transport.publish([message("good", 6)]) == []
    assert ready(rabbitmq_url, "good") == 4
