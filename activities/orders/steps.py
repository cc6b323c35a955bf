"""The steps of an order, each an activity: a Celery task whose outcome the workflow remembers.

Every step hands the activity's idempotency key on to the outside, so that a step which is repeated after a crash
has its effect once.
"""

from __future__ import annotations

from datetime import timedelta

from activities.orders.models import Ending, Order
from activities.orders.outside import CardDeclined, OutOfStock, Undeliverable, perform
from orchestrator import RetryPolicy, activity

_PATIENCE = timedelta(seconds=30)


@activity.defn(start_to_close_timeout=_PATIENCE, retry_policy=RetryPolicy(non_retryable_error_types=[OutOfStock]))
def reserve_stock(order: Order) -> str:
    """Set the goods aside; raises OutOfStock for good."""
    return _step("reserve_stock", order)


@activity.defn(start_to_close_timeout=_PATIENCE, retry_policy=RetryPolicy(non_retryable_error_types=[CardDeclined]))
def charge(order: Order) -> str:
    """Take the money; raises CardDeclined for good, and GatewayError when it is worth another try."""
    return _step("charge", order)


@activity.defn(start_to_close_timeout=_PATIENCE, retry_policy=RetryPolicy(non_retryable_error_types=[Undeliverable]))
def ship(order: Order) -> str:
    """Give the parcel to the carrier; raises Undeliverable for good."""
    return _step("ship", order)


@activity.defn(start_to_close_timeout=_PATIENCE)
def invoice(order: Order) -> str:
    """Write the invoice."""
    return _step("invoice", order)


@activity.defn(start_to_close_timeout=_PATIENCE)
def release_stock(order: Order) -> str:
    """Undo reserve_stock."""
    return _step("release_stock", order)


@activity.defn(start_to_close_timeout=_PATIENCE)
def refund(order: Order) -> str:
    """Undo charge."""
    return _step("refund", order)


@activity.defn(start_to_close_timeout=_PATIENCE)
def recall_parcel(order: Order) -> str:
    """Undo ship."""
    return _step("recall_parcel", order)


@activity.defn(start_to_close_timeout=_PATIENCE)
def void_invoice(order: Order) -> str:
    """Undo invoice."""
    return _step("void_invoice", order)


@activity.defn(start_to_close_timeout=_PATIENCE)
def remind_approver(order: Order, number: int) -> str:
    """Remind whoever approves big orders that one is waiting, for the first, second, … time."""
    return _step(f"remind_approver {number}", order)


@activity.defn(start_to_close_timeout=_PATIENCE)
def notify(order: Order, ending: Ending) -> str:
    """Tell the customer how the order ended."""
    return f"{_step('notify', order)}: {ending}"


def _step(name: str, order: Order) -> str:
    info = activity.info()
    return perform(order, name, attempt=info.attempt, key=info.idempotency_key)
