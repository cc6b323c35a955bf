"""What the shop does for an order, one step each; and a plain Celery task that looks after the starts."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from orchestrator import activity
from orders.models import Order


@activity.defn
def charge(order_id: int) -> str:
    """Takes the money. The gateway knows the key of an attempt that was made before."""
    receipt = f"receipt of {activity.info().idempotency_key}"
    Order.objects.filter(pk=order_id).update(status=Order.Status.PAID)
    return receipt


@activity.defn
def send(order_id: int, parcel: str) -> None:
    """Notes that the parcel is on its way."""
    Order.objects.filter(pk=order_id).update(status=Order.Status.SENT)


@activity.defn
def refund(order_id: int, receipt: str) -> None:
    """Gives the money back."""
    Order.objects.filter(pk=order_id).update(status=Order.Status.REFUNDED)


@shared_task
def start_forgotten_orders() -> None:
    """Starts what a process that died right after a commit left behind; for all others, it changes nothing."""
    from orders.workflows import fulfil
    from shop.celery import durable

    a_while_ago = timezone.now() - timedelta(minutes=5)
    for order in Order.objects.filter(status=Order.Status.NEW, placed_at__lt=a_while_ago):
        durable.start(fulfil, order.pk, id=order.workflow_id)
