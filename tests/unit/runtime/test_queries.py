"""Queries answer from the state and change nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.errors import QueryError
from tests.unit.runtime.harness import Run, act, query_of


class Order:
    def __init__(self) -> None:
        self.stage = "new"
        self.task: Any = None

    @workflow.run
    async def run(self) -> str:
        self.stage = "working"
        self.task = act("work")
        await self.task
        self.stage = "done"
        return self.stage

    @workflow.query
    def current(self) -> str:
        return self.stage

    @workflow.query(name="scaled")
    def times(self, factor: int, unit: str = "x") -> list[str]:
        return [f"{self.stage}{unit}"] * factor

    @workflow.query
    def raises(self) -> str:
        raise ValueError("no answer")

    @workflow.query
    def commands(self) -> str:
        act("sneaky")
        return "?"

    @workflow.query
    def spawns(self) -> str:
        asyncio.ensure_future(asyncio.sleep(0))  # noqa: RUF006 - it must be refused
        return "?"

    @workflow.query
    def cancels(self) -> bool:
        return bool(self.task.cancel())

    @workflow.query
    def draws(self) -> str:
        return str(workflow.uuid4())

    @workflow.query
    def odd(self) -> Any:
        return object()

    @workflow.query
    def facts(self) -> list[str]:
        return [workflow.now().isoformat(), workflow.info().run_id]


def test_f19_a_query_answers_open_and_closed_runs_live_and_replayed() -> None:
    run = Run(Order)
    run.start()
    assert run.query("current") == "working"
    assert query_of(run.replayed(), "current") == "working"
    assert run.query("facts")[1] == "run-1"
    run.complete(1)
    assert run.query("current") == "done"
    assert query_of(run.replayed(), "current") == "done"


def test_arguments_and_names_are_those_of_the_handler() -> None:
    run = Run(Order)
    run.start()
    assert run.query("scaled", 2) == ["workingx"] * 2
    assert run.query("scaled", 1, "!") == ["working!"]
    with pytest.raises(QueryError, match="factor"):
        run.query("scaled", "two")
    with pytest.raises(QueryError, match="has no query 'times'.*'scaled'"):
        run.query("times", 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raises", "ValueError: no answer"),
        ("commands", "A query handler only reads"),
        ("spawns", "A query handler only reads"),
        ("cancels", "A query handler only reads"),
        ("draws", "A query handler only reads"),
        ("odd", "answer of query 'odd'"),
    ],
)
def test_a22_a_failing_query_is_an_error_and_leaves_the_run_as_it_was(name: str, message: str) -> None:
    run = Run(Order)
    run.start()
    with pytest.raises(QueryError, match=message):
        run.query(name)
    run.complete(1)
    assert run.result == "done"
    run.replayed()


def test_a_run_that_has_not_begun_has_no_answer_yet() -> None:
    with pytest.raises(QueryError, match="has not begun"):
        Run(Order).query("current")


def test_a_function_has_no_queries() -> None:
    async def plain() -> None: ...

    run = Run(plain)
    run.start()
    with pytest.raises(QueryError, match="has no query 'current'; it has none"):
        run.query("current")
