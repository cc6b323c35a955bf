"""The project's own tests: `python manage.py test`."""

from datetime import timedelta

from django.test import TestCase

from orchestrator.testing import WorkflowEnvironment
from orders.models import Order
from shop.celery import app, durable


class OrderTests(TestCase):
    """Orders from the first request to their end, without broker and worker, in no time."""

    def setUp(self) -> None:
        self.env = self.enterContext(WorkflowEnvironment(app))
        self.enterContext(self.env.stand_in_for(durable))

    def place(self) -> Order:
        """Places an order. Django's TestCase never commits, so what waits for the commit is told to run."""
        with self.captureOnCommitCallbacks(execute=True):
            response = self.client.post("/orders/", {"item": "book", "cents": 999})
        return Order.objects.get(pk=response.json()["order"])

    def test_an_order_that_nobody_packs_is_refunded_after_three_days(self) -> None:
        order = self.place()
        self.env.advance(timedelta(days=3))
        order.refresh_from_db()
        self.assertEqual(order.status, "refunded")

    def test_an_order_is_paid_and_sent(self) -> None:
        order = self.place()
        self.assertEqual(order.status, "paid")
        self.client.post(f"/orders/{order.pk}/packed/", {"parcel": "P1"})
        self.assertEqual(durable.get_handle(order.workflow_id).result(), "sent as P1")
        self.assertEqual(self.client.get(f"/orders/{order.pk}/").json(), {"status": "sent", "workflow": "COMPLETED"})

    def test_an_order_that_is_refused_starts_nothing(self) -> None:
        with self.captureOnCommitCallbacks(execute=True) as calls, self.assertRaises(ValueError):
            self.client.post("/orders/", {"item": "book", "cents": "many"})
        self.assertEqual((calls, durable.list().items), ([], []))

    def test_an_order_whose_start_was_missed_is_started_later(self) -> None:
        from orders.tasks import start_forgotten_orders

        order = Order.objects.create(item="book", cents=999)
        Order.objects.update(placed_at=order.placed_at - timedelta(minutes=6))
        start_forgotten_orders()
        order.refresh_from_db()
        self.assertEqual(order.status, "paid")
