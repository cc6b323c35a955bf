"""An order, as the shop keeps it."""

from django.db import models


class Order(models.Model):
    """One order. Where it stands is a column; what happens next is its workflow."""

    class Status(models.TextChoices):
        """Where an order stands."""

        NEW = "new"
        PAID = "paid"
        SENT = "sent"
        REFUNDED = "refunded"

    item = models.CharField(max_length=100)
    cents = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.NEW)
    placed_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.item} ({self.status})"

    @property
    def workflow_id(self) -> str:
        """The id of its workflow: made of the order, so that starting twice is starting once."""
        return f"order-{self.pk}"
