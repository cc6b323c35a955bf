"""Our part of a Celery message, as the worker reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.engine.attempts import Ticket
from orchestrator.transport.celery import HEADER
from orchestrator.types import SECOND, Micros


def ticket_of(request: Mapping[str, Any]) -> Ticket | None:
    """Returns what a message says about the attempt it offers; None for any other message.

    A header of our name that somebody else wrote is none of ours.

    Args:
        request: Celery's request dictionary of the message.
    """
    header = _header(request)
    delivery = request.get("delivery_info") or {}
    try:
        return Ticket(
            run_id=_text(header["run"]),
            number=_whole(header["number"]),
            attempt=_whole(header["attempt"]),
            nonce=_text(header["nonce"]),
            published_at=_whole(header["published_at"]),
            redelivered=bool(delivery.get("redelivered")),
            retries=int(request.get("retries") or 0),
        )
    except (KeyError, ValueError):
        return None


def start_to_close_of(request: Mapping[str, Any]) -> float | None:
    """Returns an attempt's start-to-close time-out in seconds, or None."""
    micros: Micros | None = _header(request).get("start_to_close_us")
    return micros / SECOND if ticket_of(request) is not None and isinstance(micros, int) else None


def arrival_of(request: Mapping[str, Any]) -> tuple[str, Micros] | None:
    """Returns the queue that a wake-up was sent to, and when; None where the message does not say it."""
    header = _header(request)
    try:
        return _text(header["queue"]), _whole(header["published_at"])
    except (KeyError, ValueError):
        return None


def _header(request: Mapping[str, Any]) -> Mapping[str, Any]:
    header = request.get(HEADER)
    return header if isinstance(header, Mapping) else {}


def _text(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError(value)
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(value)
    return value
