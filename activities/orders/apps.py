"""How the shop's Celery apps are configured: one with workflows, one that runs bare chains only."""

from __future__ import annotations

from celery import Celery
from kombu.transport.sqlalchemy import Transport as SqlTransport

EMBEDDED_BROKER = "memory://"


def make_app(*, broker: str, queue: str = "orders", durable: bool = True) -> Celery:
    """Return a Celery app of the shop.

    Payments have a queue of their own, as in a shop whose gateway takes a few calls at a time.

    Args:
        broker: the broker's URL; ``memory://`` is one process only.
        queue: the queue of everything but payments, which go to ``<queue>.payments``.
        durable: False for the app that runs bare chains only and knows no workflows.
    """
    modules = ["activities.orders.steps", "activities.orders.workflows"] if durable else ["activities.orders.canvas"]
    app = Celery("shop", broker=broker, include=modules)
    payments = ["charge", "refund"] if durable else ["bare.charge"]
    app.conf.update(
        task_default_queue=queue,
        task_routes={name: {"queue": f"{queue}.payments"} for name in payments},
        task_ignore_result=True,
        broker_connection_retry_on_startup=True,
        worker_prefetch_multiplier=1,
    )
    # Brokers without a server are polled; the default of one second between two looks is 16 tasks a second.
    if broker.startswith("memory:"):
        app.conf.broker_transport_options = {"polling_interval": 0.002}
    elif broker.startswith("sqla+"):
        # As a transport option it would end up at create_engine(), which refuses it.
        SqlTransport.polling_interval = 0.02
    return app


def queues_of(app: Celery) -> list[str]:
    """Return the queues a worker of ``app`` has to consume."""
    queue = str(app.conf.task_default_queue)
    return [queue, f"{queue}.payments"]
