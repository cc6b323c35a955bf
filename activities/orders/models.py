"""What crosses the borders of the shop's workflows: the order, the rules it is handled by, and how it ended."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Currency(StrEnum):
    """The currencies the shop takes."""

    EUR = "EUR"
    USD = "USD"


class Order(BaseModel):
    """One clean order. Amounts are whole cents of ``currency``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order_id: Annotated[str, Field(min_length=1, max_length=40)]
    customer: Annotated[str, Field(min_length=1, max_length=200)]
    sku: Annotated[str, Field(pattern=r"^[A-Z]{3,6}-[0-9]{2,4}$")]
    quantity: Annotated[int, Field(ge=1, le=1_000)]
    cents: Annotated[int, Field(ge=1, le=100_000_000)]
    currency: Currency
    note: str = ""

    @property
    def price(self) -> str:
        """The amount as people read it, for example ``EUR 1,234.56``."""
        return f"{self.currency} {self.cents // 100:,}.{self.cents % 100:02d}"


class Rules(BaseModel):
    """How the shop handles orders; an input of the workflow, so a running order keeps the rules it began with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    approval_from_cents: int = 50_000
    remind_after: timedelta = timedelta(hours=24)
    reminders: int = 3

    def needs_approval(self, order: Order) -> bool:
        """Whether somebody has to approve ``order`` before it is shipped."""
        return order.cents >= self.approval_from_cents


class Ending(StrEnum):
    """How an order ended, as the shop sees it (the workflow itself completes in every case)."""

    SHIPPED = "shipped"
    OUT_OF_STOCK = "out of stock"
    DECLINED = "card declined"
    REFUSED = "not approved"
    UNDELIVERABLE = "undeliverable"


class Outcome(BaseModel):
    """What became of an order: its ending, the references the steps gave, and what was undone, in that order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order_id: str
    ending: Ending
    references: dict[str, str] = {}
    undone: list[str] = []
    approved_by: str | None = None
