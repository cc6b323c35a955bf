"""Writes orders.csv, always the same bytes: ``python -m activities.orders.data.make_orders``.

Most rows are clean orders written by several hands; a fixed share carries the dirt that real exports have.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from random import Random

SEED = 20_261_130
CLEAN_ROWS = 280
HEADER = ["order_id", "customer", "sku", "quantity", "amount", "currency", "note"]
PEOPLE = [
    "Ann Meyer",
    "Zoë Müller",
    "José García",
    "Renée d'Arc",
    'Bob "the Builder" Stone',
    "Smith, John",
    "O’Neill & Sons",
    "李小龙",
    "Иван Петров",
    "مريم حسن",
    "דוד לוי",
    "Zoe\u0308 Mu\u0308ller",
    "Lucía 🎈",
    "👩‍👩‍👧 Family Shop",
    "Åsa Öberg",
    "Nguyễn Thị Hà",
    "ΣΩΚΡΑΤΗΣ",
    "Jean-Luc\u00a0Petit",
    "ﬁne ﬂowers",
]
SKUS = ["LAMP-10", "LAMP-20", "CHAIR-07", "DESK-120", "MUG-01", "BOOK-404", "PLANT-33", "SHELF-2000"]
NOTES = [
    "",
    "",
    "",
    "",
    "gift wrap",
    "ring twice,\nthen wait",
    'says "fragile"',
    "ниже этаж",
    "Σας ευχαριστώ",
    "deliver after 6 pm; not on Monday",
    "🎁",
]

Row = list[str]


def make_rows(random: Random) -> list[Row]:
    """Return all rows after the header, dirt included."""
    rows = [_clean(random, 1001 + number) for number in range(CLEAN_ROWS)]
    for row in random.sample(rows, 60):
        _scruffy(random, row)
    for place, spoil in zip(random.sample(range(CLEAN_ROWS), len(_SPOILED)), _SPOILED, strict=True):
        spoil(rows[place])
    # Only intact rows are doubled, so that a duplicate is rejected for being one.
    intact = [row for row in rows if len(row) == len(HEADER) and all(row[:6])]
    for row in random.sample(intact, 9):
        rows.insert(random.randrange(len(rows)), list(row))
    for row in random.sample(intact, 5):
        other = list(row)
        other[3] = str(int(row[3].strip()) + 1) if row[3].strip().isdigit() else "1"
        rows.insert(random.randrange(len(rows)), other)
    for _ in range(3):
        rows.insert(random.randrange(len(rows)), [""] * len(HEADER))
    return rows


def render(rows: list[Row]) -> bytes:
    """Return the file as a spreadsheet program would have saved it: a byte order mark and CRLF line ends."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(HEADER)
    writer.writerows(rows)
    return buffer.getvalue().encode("utf-8-sig")


def _clean(random: Random, number: int) -> Row:
    cents = random.randint(199, 49_999) if random.random() < 0.8 else random.randint(50_000, 459_999)
    currency = random.choice(["EUR", "EUR", "EUR", "USD", "USD"])
    amount = _amount(cents, comma=currency == "EUR" and random.random() < 0.5)
    return [
        f"A-{number}",
        random.choice(PEOPLE),
        random.choice(SKUS),
        str(random.randint(1, 6)),
        amount,
        currency,
        random.choice(NOTES),
    ]


def _amount(cents: int, *, comma: bool) -> str:
    text = f"{cents / 100:,.2f}"
    return text.translate(str.maketrans(",.", ".,")) if comma else text


def _scruffy(random: Random, row: Row) -> None:
    """Change how a row is written and not what it says."""
    match random.randrange(5):
        case 0:
            row[2] = row[2].lower()
        case 1:
            row[1] = f"{row[1]}  "
        case 2:
            row[5] = f" {row[5].lower()}"
        case 3:
            row[0] = f"{row[0]} "
        case _:
            row[4] = f"\u00a0{row[4]} "


def _put(column: str, value: str) -> Callable[[Row], None]:
    place = HEADER.index(column)

    def spoil(row: Row) -> None:
        row[place] = value

    return spoil


def _unquoted_comma(row: Row) -> None:
    row.append("left over")


def _cut_short(row: Row) -> None:
    del row[4:]


_SPOILED: list[Callable[[Row], None]] = [
    *[
        _put(column, "")
        for column in ("order_id", "customer", "customer", "sku", "quantity", "amount", "amount", "currency")
    ],
    *[
        _put("amount", text)
        for text in (
            "-12.50",
            "-1.234,56",
            "0",
            "0,00",
            "1.234",
            "2,500",
            "twelve",
            "1,23,456.00",
            "12.345,678.90",
            "€ 12,50",
        )
    ],
    *[_put("currency", text) for text in ("GBP", "XXX", "$", "EURO")],
    *[_put("quantity", text) for text in ("0", "-2", "two", "1.5", "100000", "٣")],
    *[_put("sku", text) for text in ("?", "LAMP 10", "LAMP-１０")],
    *[_put("customer", text) for text in ("   ", "Tab\there", "Bell\x07")],
    _unquoted_comma,
    _unquoted_comma,
    _cut_short,
]


def main() -> None:
    """Write the file beside this script."""
    path = Path(__file__).parent / "orders.csv"
    path.write_bytes(render(make_rows(Random(SEED))))


if __name__ == "__main__":
    main()
