"""Messages of others that carry a header of our name: they are none of ours, and hurt nothing."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.worker.header import arrival_of, start_to_close_of, ticket_of

OURS: dict[str, Any] = {
    "run": "r",
    "number": 1,
    "attempt": 1,
    "nonce": "n",
    "published_at": 5,
    "start_to_close_us": 2_000_000,
}


@pytest.mark.parametrize(
    "header",
    [
        None,
        "airflow",
        ["x"],
        7,
        {},
        {"nonce": "n"},
        OURS | {"number": "one"},
        OURS | {"number": 2**70},
        OURS | {"run": None},
        OURS | {"run": "a\0b"},
        OURS | {"published_at": None},
    ],
    ids=repr,
)
def test_a_header_of_somebody_else_is_none_of_ours(header: Any) -> None:
    assert ticket_of({"orchestrator": header}) is None
    assert start_to_close_of({"orchestrator": header}) is None
    assert arrival_of({"orchestrator": header}) is None


def test_our_own_header_is_read() -> None:
    ticket = ticket_of({"orchestrator": OURS, "delivery_info": {"redelivered": True}})
    assert ticket is not None
    assert ticket.redelivered
    assert start_to_close_of({"orchestrator": OURS}) == 2.0
    assert start_to_close_of({"orchestrator": OURS | {"start_to_close_us": "soon"}}) is None
    assert arrival_of({"orchestrator": {"run": "r", "queue": "q", "published_at": 5}}) == ("q", 5)
