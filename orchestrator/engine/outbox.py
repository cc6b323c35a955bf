"""Signals sent inside a caller's own transaction (protocol rules P4, P6).

Such a sender can't take the lineage's gate: it would hold it for as long as the caller pleases. So the
signal is written to the outbox, in the caller's transaction, and delivered after its commit: by the client's
``flush()``, else by the next tick of the sweep. Delivery accepts the signal and deletes the outbox row in one
transaction, and the signal id makes a repeated delivery a redelivery.

A signal that its run refuses for good (closed, undeclared, in conflict) is logged as an error and dropped:
its sender's transaction is long over.
"""

from __future__ import annotations

import logging

from orchestrator.engine.core import Engine
from orchestrator.engine.retries import resend_delay
from orchestrator.engine.signals import Sent, SignalRequest, accept, wake_for_sent
from orchestrator.engine.targets import Target, find_run
from orchestrator.errors import InboxFull, SignalError, WorkflowClosed, WorkflowNotFound
from orchestrator.model.payloads import Payload
from orchestrator.store import outbox
from orchestrator.store.database import Connection
from orchestrator.store.outbox import OutboxRow
from orchestrator.store.sweeps import Tick
from orchestrator.types import SECOND

logger = logging.getLogger(__name__)

SIGNAL = "signal"
"""Kind of the outbox rows that hold a signal."""
LAST_TRY_US = 600 * SECOND
"""Longest pause between two tries to deliver into a full inbox."""


def enqueue_signal(engine: Engine, conn: Connection, request: SignalRequest) -> None:
    """Writes a signal to the outbox, through the caller's connection.

    Raises:
        WorkflowNotFound: There is no such workflow or run, as the caller's transaction sees it.
    """
    run = find_run(conn, request.target)
    now = engine.db.now(conn)
    attrs = {
        "workflow_id": request.target.workflow_id,
        "run_id": request.target.run_id or run.run_id,
        "name": request.name,
        "signal_id": request.signal_id,
        "digest": request.payload.digest,
    }
    payload = request.payload.data
    outbox.insert(conn, request.target.namespace, SIGNAL, attrs=attrs, payload=payload, now=now, next_send_at=now)


def deliver(engine: Engine, _tick: Tick | None, limit: int) -> int:
    """Delivers signals from the outbox: a step of the sweep."""
    taken: list[int] = []
    while len(taken) < limit and (delivered := engine.db.run(lambda conn: _deliver_one(engine, conn), what="outbox")):
        taken.append(delivered.row_id)
        if delivered.sent is not None:
            wake_for_sent(engine, delivered.sent)
    return len(taken)


class _Delivered:
    def __init__(self, row_id: int, sent: Sent | None) -> None:
        self.row_id = row_id
        self.sent = sent


def _deliver_one(engine: Engine, conn: Connection) -> _Delivered | None:
    now = engine.db.now(conn)
    rows = outbox.due(conn, now, 1)
    if not rows:
        return None
    row = rows[0]
    sent: Sent | None = None
    try:
        sent = accept(engine, conn, _request(row))
    except InboxFull:
        outbox.postpone(conn, row.id, now + resend_delay(row.send_count, SECOND, LAST_TRY_US))
        return _Delivered(row.id, None)
    except (SignalError, WorkflowClosed, WorkflowNotFound) as error:
        logger.error("A signal sent in a transaction could not be delivered after its commit. %s", error)  # noqa: TRY400 - expected
    outbox.delete(conn, [row.id])
    return _Delivered(row.id, sent)


def _request(row: OutboxRow) -> SignalRequest:
    attrs = row.attrs
    target = Target(namespace=row.namespace, workflow_id=attrs["workflow_id"], run_id=attrs["run_id"])
    payload = Payload(data=row.payload or b"", digest=attrs["digest"])
    return SignalRequest(target=target, name=attrs["name"], signal_id=attrs["signal_id"], payload=payload)
