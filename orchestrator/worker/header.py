"""Our part of a Celery message, as the worker reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.engine.attempts import Ticket
from orchestrator.transport.celery import HEADER
from orchestrator.types import SECOND, Micros


def ticket_of(request: Mapping[str, Any]) -> Ticket | None:
    """Returns what a message says about the attempt it offers; None for any other message.

    Args:
        request: Celery's request dictionary of the message.
    """
    header = request.get(HEADER)
    if not isinstance(header, Mapping) or "nonce" not in header:
        return None
    delivery = request.get("delivery_info") or {}
    return Ticket(
        run_id=str(header["run"]),
        number=int(header["number"]),
        attempt=int(header["attempt"]),
        nonce=str(header["nonce"]),
        published_at=int(header["published_at"]),
        redelivered=bool(delivery.get("redelivered")),
        retries=int(request.get("retries") or 0),
    )


def start_to_close_of(request: Mapping[str, Any]) -> float | None:
    """Returns an attempt's start-to-close time-out in seconds, or None."""
    micros: Micros | None = (request.get(HEADER) or {}).get("start_to_close_us")
    return None if micros is None else micros / SECOND
