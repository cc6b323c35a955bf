"""What the bookshop reaches for outside: here every effect is noted, and trouble comes on demand."""

import os
import time
from collections import Counter
from pathlib import Path

effects: list[str] = []
"""All effects in this process, such as ``ship 42``."""
trouble: Counter[str] = Counter()
"""How many more calls of a kind shall fail."""


class CardDeclined(Exception):
    """The bank says no."""


def note(kind: str, what: str) -> None:
    """Notes an effect, in this process and in a file; holds the caller up as long as the file ``hold.<kind>`` is there."""
    folder = os.environ.get("EFFECTS_DIR")
    effects.append(f"{kind} {what}")
    if folder is not None:
        with (Path(folder) / kind).open("a") as file:
            file.write(f"{what}\n")
        deadline = time.monotonic() + 60
        while (Path(folder) / f"hold.{kind}").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
    if trouble[kind]:
        trouble[kind] -= 1
        raise ConnectionError(f"no answer to {kind}")


class Warehouse:
    """Where the books are."""

    def reserve(self, order_id: str) -> str:
        """Puts the books of an order aside."""
        note("reserve", order_id)
        return f"reservation-{order_id}"

    def release(self, reservation: str) -> None:
        """Puts them back."""
        note("release", reservation)

    def ship(self, receipt: str) -> str:
        """Sends them."""
        note("ship", receipt)
        return f"parcel for {receipt}"


class Gateway:
    """Who takes the money."""

    def charge(self, reservation: str, cents: int, idempotency_key: str = "") -> str:
        """Charges once for each key."""
        if cents < 0:
            raise CardDeclined(reservation)
        note("charge", reservation)
        return f"receipt-{reservation}"


class Catalogue:
    """What books there are."""

    def find(self, isbn: str) -> str:
        """Returns a title."""
        note("find", isbn)
        return f"Title of {isbn}"

    def price(self, isbn: str) -> int:
        """Returns a price in cents."""
        note("price", isbn)
        return 100 * len(isbn)


class Post:
    """Who carries parcels and letters."""

    def quote(self, carrier: str, parcel: str) -> int:
        """Returns what a carrier asks for, in cents."""
        note("quote", f"{carrier} {parcel}")
        return 100 * len(carrier)

    def book(self, parcel: str, cents: int) -> str:
        """Books the carrier with that price."""
        note("book", f"{parcel} {cents}")
        return f"{parcel} goes for {cents}"

    def write(self, to: str, what: str) -> str:
        """Sends a letter."""
        note("write", f"{to}: {what}")
        return f"{to} was told: {what}"


warehouse, gateway, catalogue, post = Warehouse(), Gateway(), Catalogue(), Post()
