"""Stands in for a payment provider."""


class CardDeclined(Exception):
    """Trying again is of no use."""


class Gateway:
    """Takes money once for each idempotency key."""

    def charge(self, order_id: str, cents: int, *, idempotency_key: str) -> str:
        """Returns a receipt."""
        assert idempotency_key
        return f"{order_id}: {cents}"


gateway = Gateway()
