"""The programs of docs/workflows.md do what the page says of them."""

import re
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from orchestrator import WorkflowCanceled, WorkflowFailed
from orchestrator.activity.definition import registry as activities
from orchestrator.testing import WorkflowEnvironment
from tests.support.processes import ROOT


@pytest.fixture(scope="module")
def page() -> Any:
    """The page's programs as one module."""
    text = (ROOT / "docs/workflows.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    with activities.scope():
        module = ModuleType("workflows_page")
        exec("\n\n".join(blocks), module.__dict__)
        yield module


def test_a_trip_is_booked_once_the_passport_is_there(page: Any):
    with WorkflowEnvironment() as env:
        env.stub(page.book, side_effect=lambda what, day: f"{what} on {day}")
        handle = env.start(page.trip, "Monday")
        handle.signal("passport", "P1")
        assert handle.result() == "flight on Monday, hotel on Monday for P1"


def test_what_was_booked_is_given_back_when_there_is_no_hotel_no_passport_or_no_wish(page: Any):
    with WorkflowEnvironment() as env:
        env.stub(page.give_back, returns=None)
        env.stub(page.book, side_effect=["F1", *[ConnectionError("no hotel")] * 3])
        with pytest.raises(WorkflowFailed, match="no hotel"):
            env.run(page.trip, "Monday")
        assert len(env.calls(page.book)) == 4

        env.stub(page.book, returns="F2")
        with pytest.raises(WorkflowFailed, match="TimeoutError"):
            env.run(page.trip, "Tuesday")

        env.stub(page.book, returns="F3")
        handle = env.start(page.trip, "Wednesday")
        handle.cancel()
        with pytest.raises(WorkflowCanceled):
            handle.result()
        assert [call.args for call in env.calls(page.give_back)] == [("F1",), ("F2",), ("F3",)]


def test_a_vote_ends_when_all_have_voted(page: Any):
    with WorkflowEnvironment() as env:
        handle = env.start(page.Vote.run, 3)
        handle.signal(page.Vote.vote, "ann", True)
        assert handle.query(page.Vote.missing, 3) == 2
        handle.signal(page.Vote.vote, "bob", False)
        env.advance(timedelta(days=6))
        handle.signal(page.Vote.vote, "cat", True)
        assert handle.result() is True
