"""Reads a file of orders as shops have them: every row becomes an ``Order`` or is rejected with a reason.

Nothing is dropped in silence: rows = orders + rejected rows (blank lines are no rows). A row that repeats an
earlier one exactly is rejected and the earlier one stays. Rows that share an order id but disagree are all
rejected, since nobody here can know which is right.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from activities.orders.models import Currency, Order
from activities.orders.money import BadAmount, parse_cents

COLUMNS = ("order_id", "customer", "sku", "quantity", "amount", "currency", "note")
SAMPLE = Path(__file__).parent / "data" / "orders.csv"


class BadFile(ValueError):
    """The file is no file of orders at all."""


class BadRow(ValueError):
    """One row cannot be an order; the message is the reason."""


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """A row that did not become an order. ``line`` is the line of the file it begins on, counted from 1."""

    line: int
    order_id: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A file read: its orders in file order, and its rejected rows in file order."""

    orders: tuple[Order, ...]
    rejected: tuple[Rejected, ...]


def read_orders(path: Path = SAMPLE) -> Reading:
    """Read the CSV file at ``path`` (UTF-8, with or without a byte order mark).

    Raises:
        BadFile: when the header is not the expected one or the bytes are not UTF-8 CSV.
    """
    parsed: list[tuple[int, Order]] = []
    rejected: list[Rejected] = []
    try:
        for line, cells in _rows(path):
            try:
                parsed.append((line, parse_row(cells)))
            except BadRow as reason:
                rejected.append(Rejected(line=line, order_id=cells[0].strip() if cells else "", reason=str(reason)))
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadFile(f"{path} is not a UTF-8 CSV file: {error}") from error
    orders, repeated = _settle_duplicates(parsed)
    return Reading(orders=tuple(orders), rejected=tuple(sorted([*rejected, *repeated], key=lambda row: row.line)))


def parse_row(cells: list[str]) -> Order:
    """Turn the cells of one row into an order.

    Raises:
        BadRow: with the reason, for people.
    """
    if len(cells) != len(COLUMNS):
        raise BadRow(f"has {len(cells)} cells instead of {len(COLUMNS)}")
    row = {column: _tidy(cell) for column, cell in zip(COLUMNS, cells, strict=True)}
    for column in COLUMNS[:-1]:
        if not row[column]:
            raise BadRow(f"{column} is empty")
    try:
        return Order(
            order_id=row["order_id"].upper(),
            customer=_printable("customer", row["customer"]),
            sku=row["sku"].upper(),
            quantity=_quantity(row["quantity"]),
            cents=_cents(row["amount"]),
            currency=_currency(row["currency"]),
            note=row["note"],
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise BadRow(f"{first['loc'][0]} {str(first['input'])!r} is refused: {first['msg']}") from error


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line number and the cells of every row that is not blank."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        header = tuple(cell.strip().lower() for cell in next(reader, []))
        if header != COLUMNS:
            raise BadFile(
                f"{path} begins with {', '.join(header) or 'nothing'}; expected the header {', '.join(COLUMNS)}"
            )
        line = reader.line_num + 1
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1


def _settle_duplicates(parsed: list[tuple[int, Order]]) -> tuple[list[Order], list[Rejected]]:
    by_id: dict[str, list[tuple[int, Order]]] = defaultdict(list)
    for line, order in parsed:
        by_id[order.order_id].append((line, order))
    orders: list[Order] = []
    rejected: list[Rejected] = []
    for order_id, rows in by_id.items():
        first_line, first = rows[0]
        if all(order == first for _, order in rows):
            orders.append(first)
            reason, refused = f"repeats line {first_line}", rows[1:]
        else:
            lines = ", ".join(str(line) for line, _ in rows)
            reason, refused = f"lines {lines} share this order id but differ", rows
        rejected += [Rejected(line=line, order_id=order_id, reason=reason) for line, _ in refused]
    return orders, rejected


def _tidy(cell: str) -> str:
    # Composed form, so that one name typed on two machines is one name; str.strip takes no-break spaces too.
    return unicodedata.normalize("NFC", cell).strip()


def _printable(column: str, text: str) -> str:
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise BadRow(f"{column} holds control characters")
    return text


def _quantity(text: str) -> int:
    if re.fullmatch(r"-?[0-9]{1,9}", text) is None:
        raise BadRow(f"quantity {text!r} is not a whole number")
    return int(text)


def _cents(text: str) -> int:
    try:
        cents = parse_cents(text)
    except BadAmount as error:
        raise BadRow(str(error)) from error
    if cents <= 0:
        raise BadRow(f"amount {text!r} is not positive")
    return cents


def _currency(text: str) -> Currency:
    try:
        return Currency(text.upper())
    except ValueError:
        raise BadRow(f"currency {text!r} is not taken (EUR, USD)") from None
