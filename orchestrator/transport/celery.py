"""Publishing through the team's Celery app.

Each message says for itself what it needs, whatever the app's settings are: JSON, persistent, no result,
confirmed and mandatory where the broker can, no expiry. What is the team's stays the team's: routes, queues
and their arguments, publish signals, ``task-sent`` events, time limits of tasks.

An activity's message carries no arguments (protocol rule P14): the claim loads them. Our part travels in one
header, ``orchestrator``, from which the worker knows what to claim.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from celery import Celery
from kombu import Connection, Queue

from orchestrator.model.names import task_id_for
from orchestrator.transport.broker_thread import BrokerThread
from orchestrator.transport.messages import Message, RunActivity, WakeDecision
from orchestrator.types import Attributes

logger = logging.getLogger(__name__)

HEADER = "orchestrator"
"""Name of the message header that carries our part."""
DECIDE_TASK = "orchestrator.decide"
"""Name of the task that decides a run."""
SWEEP_TASK = "orchestrator.sweep"
"""Name of the task that runs one tick of the sweep."""

_PERSISTENT = 2
_PASSED_ON = ("time_limit", "soft_time_limit", "root_id", "parent_id")
"""What a call may set for its Celery message, beside our own options."""


class CeleryTransport:
    """Publishes through a Celery app. Safe to use from several threads, and after a fork.

    Args:
        app: The team's app.
        publish_timeout: Longest time a call to :meth:`publish` takes.
    """

    def __init__(self, app: Celery, *, publish_timeout: timedelta) -> None:
        self._app = app
        self._timeout = publish_timeout.total_seconds()
        self._thread = BrokerThread(self._connect)
        self._failing = False

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        """Sends messages in order; returns those that were not sent in time (never raises for the broker)."""
        if not messages:
            return []
        batch = _Batch(messages)
        try:
            self._thread.call(lambda connection: self._send_all(connection, batch), self._timeout)
        except Exception as error:  # noqa: BLE001 - the sweep sends again; nothing is lost
            self._note_trouble(error, len(batch.unsent))
        else:
            self._note_success()
        return batch.unsent

    def depth(self, queue: str) -> int | None:
        """Returns how many messages are ready in a queue; None when the broker does not tell in time."""
        try:
            return self._thread.call(lambda connection: _depth(connection, queue), self._timeout)
        except Exception:
            logger.debug("The depth of queue %r is unknown.", queue, exc_info=True)
            return None

    def activity_queue(self, name: str, explicit: str | None) -> str:
        """Returns the queue of an activity: the explicit one, else Celery's routes, else its default."""
        return explicit or self._routed(name)

    def decision_queue(self, explicit: str | None) -> str:
        """Returns the queue of a workflow's decisions: the explicit one, else as Celery routes them."""
        return explicit or self._routed(DECIDE_TASK)

    def close(self) -> None:
        """Closes the connection to the broker."""
        self._thread.close()

    def _connect(self) -> Connection:
        url = self._app.conf.broker_write_url or self._app.conf.broker_url or ""
        options = dict(self._app.conf.broker_transport_options or {})
        if url.startswith(("amqp", "pyamqp", "py-amqp", "librabbitmq")):
            options["confirm_publish"] = True
        elif url.startswith("redis"):
            # Without them a Redis that does not answer blocks the publisher for ever.
            options.setdefault("socket_timeout", self._timeout)
            options.setdefault("socket_connect_timeout", self._timeout)
        # No heartbeat: an idle connection is dropped by us after a while instead.
        connection: Connection = self._app.connection_for_write(
            transport_options=options, connect_timeout=self._timeout, heartbeat=0
        )
        return connection

    def _send_all(self, connection: Connection, batch: _Batch) -> None:
        batch.tries += 1
        producer = self._app.amqp.Producer(connection.default_channel, auto_declare=False)
        is_redis = connection.transport.driver_type == "redis"
        while batch.waiting:
            try:
                self._send(producer, batch.waiting[0], is_redis=is_redis)
            except Exception as error:
                if batch.tries == 1 or isinstance(error, connection.connection_errors):
                    raise
                # One message that is refused (its queue is full, forbidden, or declared otherwise) must not keep
                # back those behind it: the sweep would send them together again and again.
                batch.refuse(error)
                producer = self._app.amqp.Producer(connection.channel(), auto_declare=False)
            else:
                batch.waiting.pop(0)
        if batch.error is not None:
            raise batch.error

    def _send(self, producer: Any, message: Message, *, is_redis: bool) -> None:
        task = envelope(message)
        amqp: Any = self._app.amqp
        payload = amqp.as_task_v2(
            task["id"],
            task["name"],
            task["args"],
            {},
            argsrepr=task["argsrepr"],
            kwargsrepr="{}",
            shadow=task["shadow"],
            ignore_result=True,
            retries=task["retries"],
            create_sent_event=self._app.conf.task_send_sent_event,
            **task["options"],
        )
        priority = task["priority"]
        extra = {} if priority is None else {"priority": 9 - priority if is_redis else priority}
        amqp.send_task_message(
            producer,
            task["name"],
            payload,
            queue=message.queue,
            serializer="json",
            delivery_mode=_PERSISTENT,
            retry=False,
            headers={HEADER: task["header"]},
            mandatory=True,
            **extra,
        )

    def _routed(self, name: str) -> str:
        task: Any = self._app.tasks.get(name)
        options = dict(task._get_exec_options()) if task is not None else {}  # noqa: SLF001 - as apply_async does
        route = self._app.amqp.router.route({k: v for k, v in options.items() if v is not None}, name, (), {}, task)
        queue = route.get("queue")
        if queue is not None:
            return str(getattr(queue, "name", queue))
        return self._queue_behind(route) or str(self._app.conf.task_default_queue)

    def _queue_behind(self, route: Attributes) -> str | None:
        # A route may name an exchange and a routing key only; our rows remember queues.
        exchange, key = getattr(route.get("exchange"), "name", route.get("exchange")), route.get("routing_key")
        queues: list[Queue] = list(self._app.amqp.queues.values())
        return next((str(q.name) for q in queues if q.exchange.name == exchange and q.routing_key == key), None)

    def _note_trouble(self, error: Exception, count: int) -> None:
        level = logging.DEBUG if self._failing else logging.WARNING
        self._failing = True
        logger.log(level, "The broker did not take %d message(s): %r. The sweep sends them again.", count, error)

    def _note_success(self) -> None:
        if self._failing:
            self._failing = False
            logger.info("The broker takes messages again.")


class _Batch:
    """Messages under way: those that wait for their turn, and those that were refused."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.waiting = list(messages)
        self.refused: list[Message] = []
        self.error: Exception | None = None
        """Why one was refused."""
        self.tries = 0

    @property
    def unsent(self) -> list[Message]:
        """What the broker did not take."""
        return self.refused + self.waiting

    def refuse(self, error: Exception) -> None:
        """Sets the first message aside."""
        self.error = error
        self.refused.append(self.waiting.pop(0))


def envelope(message: Message) -> dict[str, Any]:
    """Returns how a message looks to Celery: id, name, args, what Flower shows, our header, options."""
    if isinstance(message, WakeDecision):
        return {
            # Never used twice, as two wake-ups of a run may be under way at once.
            "id": task_id_for(
                message.workflow_id, message.run_id, "decide", message.published_at, random.getrandbits(20)
            ),
            "name": DECIDE_TASK,
            "args": (message.run_id,),
            "argsrepr": f"({message.workflow_id!r},)",
            "shadow": f"decide:{message.workflow_type}",
            "header": {"run": message.run_id, "queue": message.queue, "published_at": message.published_at},
            "priority": None,
            "retries": 0,
            "options": {},
        }
    return {
        "id": task_id_for(message.workflow_id, message.run_id, message.name, message.number, message.attempt),
        "name": message.name,
        "args": (),
        "argsrepr": f"({message.workflow_id!r},)",
        "shadow": f"activity:{message.name}",
        "header": _activity_header(message),
        "priority": message.priority,
        "retries": message.retries,
        "options": {key: message.celery_options[key] for key in _PASSED_ON if key in message.celery_options},
    }


def _activity_header(message: RunActivity) -> Attributes:
    return {
        "run": message.run_id,
        "number": message.number,
        "attempt": message.attempt,
        "nonce": message.nonce,
        "published_at": message.published_at,
        "start_to_close_us": message.start_to_close_us,
    }


def _depth(connection: Connection, queue: str) -> int:
    channel: Any = connection.channel()
    try:
        return int(channel.queue_declare(queue=queue, passive=True).message_count)
    except connection.channel_errors as error:
        if _is_missing(error):
            return 0
        raise
    finally:
        if getattr(channel, "is_open", True):
            channel.close()


def _is_missing(error: BaseException) -> bool:
    return 404 in (getattr(error, "code", None), getattr(error, "reply_code", None)) or "NOT_FOUND" in str(error)
