"""The shop's calls to the world outside: warehouse, card gateway, carrier, book-keeping, mail.

One call is one row in ``calls``, half of its latency on the way there, the effect in the ledger, and the other half
on the way back. A process that dies on the way back has done its work and nobody knows: that is the case
idempotency keys are for.
"""

from __future__ import annotations

from hashlib import sha256

from activities.orders.effects import current_shop
from activities.orders.fates import Fate, fate_of, latency_of
from activities.orders.models import Order


class Refused(Exception):
    """The outside said no for good; asking again is useless and nothing was done."""


class OutOfStock(Refused):
    """The warehouse does not have the goods."""


class CardDeclined(Refused):
    """The card's bank refuses the payment."""


class Undeliverable(Refused):
    """The carrier does not go to this address."""


class GatewayError(Exception):
    """The gateway gave no good answer; asking again helps, and it may have done what it was asked."""


class GatewayBusy(GatewayError):
    """The gateway refused the connection before it did anything."""


class GatewayTimeout(GatewayError):
    """The gateway did what it was asked, but its answer never came."""


def perform(order: Order, step: str, *, attempt: int, key: str) -> str:
    """Ask the outside to do one step for an order.

    Args:
        order: the order the step is for.
        step: its name, for example ``charge``.
        attempt: which attempt this is, counted from 1.
        key: the idempotency key: the outside does a step once for each key.

    Returns:
        The outside's reference for what it did.

    Raises:
        Refused: for good.
        GatewayError: for now.
    """
    shop = current_shop()
    fate = fate_of(order.order_id)
    half = latency_of(order.order_id, step).total_seconds() / 2
    shop.record_call(order_id=order.order_id, step=step, attempt=attempt, key=key)
    shop.pause(half)
    _refuse(fate, order, step, attempt)
    shop.apply_effect(order_id=order.order_id, step=step, attempt=attempt, key=key)
    if fate is Fate.ANSWER_LOST and step == "charge" and attempt == 1:
        raise GatewayTimeout(f"no answer from the card gateway for order {order.order_id}")
    shop.pause(half)
    return f"{step}-{sha256(order.order_id.encode()).hexdigest()[:8]}"


def _refuse(fate: Fate, order: Order, step: str, attempt: int) -> None:
    match fate, step:
        case Fate.OUT_OF_STOCK, "reserve_stock":
            raise OutOfStock(f"{order.sku} is sold out")
        case Fate.CARD_DECLINED, "charge":
            raise CardDeclined(f"the bank declines {order.price}")
        case Fate.UNDELIVERABLE, "ship":
            raise Undeliverable(f"no carrier takes order {order.order_id}")
        case Fate.GATEWAY_BUSY, "charge" if attempt == 1:
            raise GatewayBusy("the card gateway is busy")
        case _:
            pass
