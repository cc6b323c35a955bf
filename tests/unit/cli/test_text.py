"""Ids and payloads are other people's data: nothing of it acts on the terminal."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.text import one_line, printable, to_json
from orchestrator.client.views import SignalReceipt

HOSTILE = {
    "\x1b[31mred\x1b[0m": r"\x1b[31mred\x1b[0m",
    "a\x00b": r"a\x00b",
    "\x9b2J": r"\x9b2J",
    "over\rwritten": r"over\rwritten",
    "tab\there": r"tab\there",
    "\u202egnp.exe": r"\u202egnp.exe",
    "\u2028line": r"\u2028line",
    "\ud800lone": r"\ud800lone",
    "\U000e0041tag": r"\U000e0041tag",
    "zero\u200bwidth": r"zero\u200bwidth",
}


@pytest.mark.parametrize(("text", "shown"), HOSTILE.items(), ids=[ascii(text) for text in HOSTILE])
def test_what_a_terminal_would_act_on_is_written_out(text: str, shown: str):
    assert printable(text) == shown


@pytest.mark.parametrize("text", ["[bold]not markup[/bold]", ":smile:", "🧾 👩‍👩‍👧 é", "مرحبا", "100 % {x} \\n"])
def test_ordinary_text_stays_as_it_is(text: str):
    assert printable(text) == text


def test_line_feeds_are_kept_where_they_are_wanted():
    assert printable("a\nb") == r"a\nb"
    assert printable("a\nb", keep_lines=True) == "a\nb"


@given(st.text() | st.text(st.characters(codec=None)))
def test_json_is_safe_to_print_and_reads_back_the_same(text: str):
    printed = to_json({text: [text]})
    assert json.loads(printed) == {text: [text]}
    assert printable(printed, keep_lines=True) == printed


def test_json_of_what_the_client_answers():
    at = datetime(2026, 1, 2, tzinfo=UTC)
    receipt = SignalReceipt(signal_id="s", stored=True, run_id=None)
    assert json.loads(to_json({"at": at, "receipt": receipt})) == {
        "at": "2026-01-02T00:00:00+00:00",
        "receipt": {"signal_id": "s", "stored": True, "run_id": None},
    }
    with pytest.raises(TypeError, match="object"):
        to_json(object())


def test_a_long_value_is_cut_for_a_cell():
    assert one_line("x" * 500, 10) == '"xxxxxxxx…'
    assert one_line({"a": [1, 2]}) == '{"a": [1, 2]}'
