"""What the world outside does to an order: how long each call takes, which cards are declined, which answers get lost.

Everything follows from the order id, so two runs over one file meet the same world. No clock, no randomness.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from hashlib import sha256

STEPS = ("reserve_stock", "charge", "ship", "invoice", "notify")

_QUICKEST_MS, _SLOWEST_MS = 50, 300


class Fate(StrEnum):
    """What happens to an order on its way."""

    SMOOTH = "smooth"
    OUT_OF_STOCK = "out of stock"  # the first step is refused for good
    CARD_DECLINED = "card declined"  # the second one is
    UNDELIVERABLE = "undeliverable"  # shipping is, when money and goods are already taken
    GATEWAY_BUSY = "gateway busy"  # the first charge fails before anything was done
    ANSWER_LOST = "answer lost"  # the first charge is done, and then its answer gets lost


# Out of 100 orders; the rest goes smoothly.
_SHARES = (
    (Fate.OUT_OF_STOCK, 5),
    (Fate.CARD_DECLINED, 6),
    (Fate.UNDELIVERABLE, 5),
    (Fate.GATEWAY_BUSY, 10),
    (Fate.ANSWER_LOST, 6),
)


def fate_of(order_id: str) -> Fate:
    """Return what happens to the order; always the same for the same id."""
    point = _number(f"fate of {order_id}", 100)
    for fate, share in _SHARES:
        if point < share:
            return fate
        point -= share
    return Fate.SMOOTH


def latency_of(order_id: str, step: str) -> timedelta:
    """Return how long the outside takes for one step of the order: 50 to 300 ms."""
    return timedelta(milliseconds=_QUICKEST_MS + _number(f"{step} of {order_id}", _SLOWEST_MS - _QUICKEST_MS + 1))


def _number(text: str, below: int) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8]) % below
