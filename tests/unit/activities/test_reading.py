"""The shop reads a file of orders with the dirt real files have, and accounts for every row."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from activities.orders.data import make_orders
from activities.orders.models import Currency
from activities.orders.money import BadAmount, parse_cents
from activities.orders.reading import SAMPLE, BadFile, BadRow, Rejected, parse_row, read_orders

HEADER = "order_id,customer,sku,quantity,amount,currency,note"


def row(**changes: str) -> list[str]:
    cells = {
        "order_id": "A-1",
        "customer": "Ann",
        "sku": "MUG-01",
        "quantity": "2",
        "amount": "9.90",
        "currency": "EUR",
    }
    return list(({**cells, "note": ""} | changes).values())


def write(path: Path, *lines: str, encoding: str = "utf-8") -> Path:
    file = path / "orders.csv"
    file.write_bytes("\r\n".join([HEADER, *lines]).encode(encoding))
    return file


@pytest.mark.parametrize(
    ("text", "cents"),
    [
        ("12", 1200),
        ("12.5", 1250),
        ("12,50", 1250),
        ("1.234,56", 123456),
        ("1,234.56", 123456),
        ("1.234.567,89", 123456789),
        ("1,234,567", 123456700),
        ("1234.56", 123456),
        (" 0,05 ", 5),
        ("-12.50", -1250),
        ("+3", 300),
        ("0", 0),
    ],
)
def test_both_ways_of_writing_an_amount_are_read(text: str, cents: int) -> None:
    assert parse_cents(text) == cents


@pytest.mark.parametrize(
    "text",
    [
        "",
        "twelve",
        "1,23,456.00",
        "12.345,678.90",
        "€ 5",
        "1e5",
        "NaN",
        "5.",
        ".5",
        "1..2",
        "1.2345",
        "٣",
        "--1",
        "9" * 5000,
    ],
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(BadAmount):
        parse_cents(text)


@pytest.mark.parametrize("text", ["1.234", "2,500", "12.000"])
def test_an_amount_that_can_mean_two_things_is_refused_as_ambiguous(text: str) -> None:
    with pytest.raises(BadAmount, match="ambiguous"):
        parse_cents(text)


def test_how_a_cell_is_written_does_not_matter() -> None:
    order = parse_row(
        row(order_id=" a-1 ", customer="Zoe\u0308\u00a0", sku=" mug-01", amount="\u00a01.234,50 ", currency="usd ")
    )
    assert (order.order_id, order.customer, order.sku, order.cents, order.currency) == (
        "A-1",
        "Zoë",
        "MUG-01",
        123450,
        Currency.USD,
    )


@pytest.mark.parametrize("name", ["李小龙", "مريم حسن", "👩‍👩‍👧 Family Shop", 'Bob "the Builder"', "Smith, John"])
def test_names_of_all_scripts_are_kept(name: str) -> None:
    assert parse_row(row(customer=name)).customer == name


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"customer": " "}, "customer is empty"),
        ({"amount": ""}, "amount is empty"),
        ({"amount": "-1"}, "not positive"),
        ({"amount": "0,00"}, "not positive"),
        ({"amount": "99999999.00"}, "cents .* is refused"),
        ({"currency": "GBP"}, "currency 'GBP' is not taken"),
        ({"quantity": "0"}, "quantity '0' is refused"),
        ({"quantity": "1.5"}, "not a whole number"),
        ({"quantity": "²"}, "not a whole number"),
        ({"sku": "mug 1"}, "sku 'MUG 1' is refused"),
        ({"customer": "a\x07b"}, "control characters"),
    ],
)
def test_a_bad_cell_rejects_the_row_with_a_reason(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(BadRow, match=reason):
        parse_row(row(**changes))


def test_a_row_of_the_wrong_width_is_rejected() -> None:
    with pytest.raises(BadRow, match="has 8 cells instead of 7"):
        parse_row([*row(), "left over"])


def test_an_exact_repetition_is_rejected_and_the_first_row_stays(tmp_path: Path) -> None:
    reading = read_orders(write(tmp_path, "A-1,Ann,MUG-01,1,5.00,EUR,", 'a-1 ,Ann ,mug-01,1,"5,00",eur,'))
    assert [order.order_id for order in reading.orders] == ["A-1"]
    assert reading.rejected == (Rejected(line=3, order_id="A-1", reason="repeats line 2"),)


def test_rows_that_contradict_each_other_are_all_rejected(tmp_path: Path) -> None:
    reading = read_orders(
        write(tmp_path, "A-1,Ann,MUG-01,1,5.00,EUR,", "A-2,Bob,MUG-01,1,5.00,EUR,", "A-1,Ann,MUG-01,2,5.00,EUR,")
    )
    assert [order.order_id for order in reading.orders] == ["A-2"]
    assert [(rejected.line, rejected.reason) for rejected in reading.rejected] == [
        (2, "lines 2, 4 share this order id but differ"),
        (4, "lines 2, 4 share this order id but differ"),
    ]


def test_line_numbers_count_lines_of_the_file_and_not_records(tmp_path: Path) -> None:
    reading = read_orders(write(tmp_path, '"A-1",Ann,MUG-01,1,5.00,EUR,"two\nlines"', "A-2,,MUG-01,1,5.00,EUR,"))
    assert reading.orders[0].note == "two\nlines"
    assert reading.rejected[0].line == 4


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    assert len(read_orders(write(tmp_path, "A-1,Ann,MUG-01,1,5.00,EUR,", encoding="utf-8-sig")).orders) == 1


def test_a_file_that_is_no_file_of_orders_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(BadFile, match="expected the header"):
        read_orders(other)
    other.write_bytes(f"{HEADER}\nA-1,Zo\u00eb,MUG-01,1,5,EUR,".encode("latin-1"))
    with pytest.raises(BadFile, match="not a UTF-8 CSV file"):
        read_orders(other)


def test_every_row_of_the_sample_file_is_an_order_or_is_rejected() -> None:
    reading = read_orders()
    with SAMPLE.open(encoding="utf-8-sig", newline="") as file:
        rows = sum(any(cell.strip() for cell in cells) for cells in csv.reader(file)) - 1
    assert len(reading.orders) + len(reading.rejected) == rows
    assert (len(reading.orders), len(reading.rejected)) == (240, 54)


def test_the_sample_file_holds_every_kind_of_dirt() -> None:
    reasons = Counter(" ".join(rejected.reason.split()[:3]) for rejected in read_orders().rejected)
    kinds = [
        "is empty",
        "repeats line",
        "share this",
        "not positive",
        "ambiguous",
        "not taken",
        "cells instead",
        "control characters",
    ]
    found = [kind for kind in kinds if any(kind in rejected.reason for rejected in read_orders().rejected)]
    assert found == kinds, reasons
    customers = {order.customer for order in read_orders().orders}
    assert {"مريم حسن", "Lucía 🎈", "Zoë Müller", "Smith, John"} <= customers
    assert {order.currency for order in read_orders().orders} == set(Currency)


def test_the_script_makes_the_committed_file_to_the_byte() -> None:
    assert make_orders.render(make_orders.make_rows(Random(make_orders.SEED))) == SAMPLE.read_bytes()
