"""Queries and statements against an SQLite file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from activities import sql
from orchestrator import ApplicationError


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE parts (sku TEXT PRIMARY KEY, price DECIMAL, data BLOB)")
        connection.execute("INSERT INTO parts VALUES ('MUG', 9.5, NULL), ('DESK', 120, NULL)")
    monkeypatch.setenv("ACTIVITIES_SQL_SHOP", f"sqlite:///{path}")
    return path


def test_a_query_returns_rows_as_dictionaries() -> None:
    rows = sql.query("shop", "SELECT sku, price FROM parts WHERE price < :most ORDER BY sku", {"most": 100})
    assert rows == [{"sku": "MUG", "price": 9.5}]


def test_a_statement_is_committed_and_says_how_many_rows_it_touched(database: Path) -> None:
    assert sql.execute("shop", "UPDATE parts SET price = price + :more", {"more": 1}) == 2
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT sum(price) FROM parts").fetchone() == (131.5,)


def test_values_are_bound_and_never_part_of_the_text() -> None:
    assert sql.query("shop", "SELECT sku FROM parts WHERE sku = :sku", {"sku": "x' OR '1'='1"}) == []


def test_a_broken_rule_of_the_database_is_for_good() -> None:
    with pytest.raises(ApplicationError, match="UNIQUE") as caught:
        sql.execute("shop", "INSERT INTO parts (sku) VALUES ('MUG')")
    assert (caught.value.type, caught.value.non_retryable) == ("SqlRefused", True)


def test_a_missing_parameter_is_for_good() -> None:
    with pytest.raises(ApplicationError) as caught:
        sql.query("shop", "SELECT :nothing")
    assert caught.value.non_retryable


def test_what_the_database_may_cure_is_worth_another_try() -> None:
    with pytest.raises(ApplicationError) as caught:
        sql.query("shop", "SELECT * FROM not_yet_there")
    assert (caught.value.type, caught.value.non_retryable) == ("SqlUnavailable", False)


def test_more_rows_than_the_limit_are_refused() -> None:
    with pytest.raises(ApplicationError, match="more than 1 rows"):
        sql.query("shop", "SELECT sku FROM parts", limit=1)
    assert len(sql.query("shop", "SELECT sku FROM parts", limit=2)) == 2


@pytest.mark.parametrize("name", ["other", "", "shop; --", "../shop"])
def test_an_unknown_database_says_what_to_set(name: str) -> None:
    with pytest.raises(ApplicationError, match="set ACTIVITIES_SQL_"):
        sql.query(name, "SELECT 1")
