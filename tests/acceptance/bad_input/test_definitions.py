"""What decorators and options refuse, where they are written: no run ever starts with it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import celery
import pytest

from orchestrator import ApplicationError, RetryPolicy, activity, workflow
from orchestrator.activity.definition import registry as activities
from orchestrator.errors import DuplicateDefinition
from orchestrator.runtime.registry import default_registry
from tests.acceptance.bad_input import cases, flows
from tests.acceptance.bad_input.cases import Case, params, refuse, variants

Define = Callable[..., Any]


async def plain(value: str) -> str:
    return value


def handled(decorate: Callable[[Any], Any], handler: Any, name: str = "handler") -> Any:
    """A workflow class with one handler."""
    return workflow.defn(type("Handled", (), {"run": workflow.run(_run()), name: decorate(handler)}))


def _run() -> Any:
    async def run(self: Any) -> None: ...

    return run


def takes(annotated: bool = True) -> Any:
    def handler(self: Any, value: str) -> None: ...

    def bare(self, value): ...  # type: ignore[no-untyped-def]  # the case

    return handler if annotated else bare


# --- workflows ------------------------------------------------------------------------------------


def two_runs() -> Any:
    @workflow.defn
    class TwoRuns:
        @workflow.run
        async def first(self) -> None: ...

        @workflow.run
        async def second(self) -> None: ...


def no_run() -> Any:
    @workflow.defn
    class NoRun:
        async def run(self) -> None: ...


def inherited_run() -> Any:
    @workflow.defn
    class Child(flows.Approval): ...


def replaced_by(replacement: Any) -> Any:
    @workflow.defn
    class Child(flows.Approval):
        @workflow.run
        async def run(self, amount: int) -> list[str]:
            return []

        approve = replacement


def needs_arguments() -> Any:
    @workflow.defn
    class Needy:
        def __init__(self, gateway: str) -> None: ...

        @workflow.run
        async def run(self) -> None: ...


def no_self() -> Any:
    @workflow.defn
    class NoSelf:
        @workflow.run  # type: ignore[arg-type]  # the case
        async def run() -> None: ...


def two_marks() -> Any:
    @workflow.signal
    @workflow.query
    def approve(self: Any) -> None: ...


def run_and_signal() -> Any:
    @workflow.signal
    @workflow.run
    async def approve(self: Any) -> None: ...


def clashing(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Any:
    members = {"run": workflow.run(_run()), "one": first(takes()), "two": second(takes())}
    return workflow.defn(type("Clashing", (), members))


def declared_and_handled() -> Any:
    members = {"run": workflow.run(_run()), "approve": workflow.signal(takes())}
    members["approve"].__name__ = "approve"
    return workflow.defn(signals={"handler": str})(type("Clashing", (), members))


def two_dynamic() -> Any:
    def handler(self: Any, name: str, args: list[Any]) -> None: ...

    def other(self: Any, name: str, args: list[Any]) -> None: ...

    dynamic = workflow.signal(dynamic=True)
    members = {"run": workflow.run(_run()), "one": dynamic(handler), "two": dynamic(other)}
    return workflow.defn(type("Dynamic", (), members))


def inputs(kind: str) -> Any:
    async def bare(value) -> None: ...  # type: ignore[no-untyped-def]  # the case

    async def named(*, value: str) -> None: ...

    async def many(*value: str) -> None: ...

    async def any_named(**value: str) -> None: ...

    kinds: dict[str, Callable[..., Any]] = {"bare": bare, "named": named, "many": many, "any": any_named}
    return workflow.defn(kinds[kind])


def generator() -> Any:
    async def run() -> Any:
        yield 1

    return workflow.defn(run)


NO_FUNCTION: dict[str, Any] = {
    "a number": 5,
    "a name": "fulfil",
    "a built-in function": len,
    "a partial": functools.partial(plain, "a"),
    "a hostile object": cases.Hostile(),
}

WORKFLOWS: dict[str, list[tuple[str, Case]]] = {
    "workflow.defn": [
        *variants("name", lambda define, value: define(workflow.defn(name=value)), cases.NO_LABEL),
        *variants("queue", lambda define, value: define(workflow.defn(queue=value)), cases.NO_LABEL),
        *variants("signals", lambda define, value: define(workflow.defn(signals=value)), {
            "a list": ["go"], "a name": "go", "a number": 5, "a bool": True, "a set": {"go"}}),
        *variants("signals", lambda define, value: define(workflow.defn(signals={value: str})), cases.NO_LABEL,
            without=["a list", "a hostile object"]),
        *variants("signals", lambda define, value: define(workflow.defn(signals={"go": value})), cases.NOT_A_TYPE, {
            "a function": len, "a hostile object": cases.Hostile()}),
        *variants("workflow", lambda _, value: workflow.defn(value), NO_FUNCTION, {
            "a plain function": flows.undecorated, "a lambda": lambda: None, "an activity": flows.charge}),
        ("workflow: an async generator", Case("workflow", lambda _: generator())),
        *variants("value", lambda _, value: inputs(value), {
            "without an annotation": "bare", "keyword-only": "named", "any number of them": "many", "any keyword": "any"}),
        ("run: two of them", Case("run", lambda _: two_runs())),
        ("run: none", Case("run", lambda _: no_run())),
        ("run: inherited only", Case("run", lambda _: inherited_run())),
        *variants("approve", lambda _, value: replaced_by(value), {"replaced by no method": None, "replaced by a class": int}),
        *variants("value", lambda _, value: replaced_by(value), {"of what replaces a handler": takes(annotated=False)}),
        ("gateway: an argument of __init__", Case("gateway", lambda _: needs_arguments())),
        ("self: missing", Case("self", lambda _: no_self())),
    ],
    "workflow.run": [
        *variants("run", lambda _, value: workflow.run(value), NO_FUNCTION, {
            "a plain function": flows.undecorated, "a static method": staticmethod(plain), "a lambda": lambda self: None}),
    ],
    "workflow.signal": [
        *variants("name", lambda _, value: workflow.signal(name=value)(takes()), cases.NO_LABEL),
        *variants("dynamic", lambda _, value: workflow.signal(dynamic=value)(takes()), cases.NOT_A_FLAG),
        *variants("signal", lambda _, value: workflow.signal(value), NO_FUNCTION, {"a class method": classmethod(takes())}),
        ("name: of a lambda", Case("name", lambda _: workflow.signal(lambda self: None))),
        ("name: of a dynamic handler", Case("name", lambda _: workflow.signal(name="go", dynamic=True))),
        ("value: without an annotation", Case("value", lambda _: handled(workflow.signal, takes(annotated=False)))),
        ("handler: a dynamic one with one argument", Case("handler", lambda _: handled(workflow.signal(dynamic=True), takes()))),
        ("two: a name that is taken", Case("two", lambda _: clashing(workflow.signal(name="go"), workflow.signal(name="go")))),
        ("two: a second dynamic one", Case("two", lambda _: two_dynamic())),
        ("signals: declared and handled", Case("signals", lambda _: declared_and_handled())),
        ("approve: a query as well", Case("approve", lambda _: two_marks())),
        ("approve: the run as well", Case("approve", lambda _: run_and_signal())),
    ],
    "workflow.query": [
        *variants("name", lambda _, value: workflow.query(name=value)(takes()), cases.NO_LABEL),
        *variants("query", lambda _, value: workflow.query(value), NO_FUNCTION),
        ("plain: async", Case("plain", lambda _: workflow.query(plain))),
        ("name: of a lambda", Case("name", lambda _: workflow.query(lambda self: None))),
        ("value: without an annotation", Case("value", lambda _: handled(workflow.query, takes(annotated=False)))),
        ("two: a name that is taken", Case("two", lambda _: clashing(workflow.query(name="go"), workflow.query(name="go")))),
    ],
}  # fmt: skip

# --- activities -----------------------------------------------------------------------------------


def bare(value):  # type: ignore[no-untyped-def]  # the case
    return value


def counting() -> Iterator[int]:
    yield 1


def options(how: Callable[..., Any]) -> Iterator[tuple[str, Case]]:
    """The options that ``activity.defn``, ``activity.of`` and ``with_options`` share."""
    yield from variants("queue", lambda _, value: how(queue=value), cases.NO_LABEL)
    yield from variants(
        "retry_policy", lambda _, value: how(retry_policy=value), cases.NOT_TEXT, {"a dict": {"maximum_attempts": 3}}
    )
    yield from variants(
        "priority",
        lambda _, value: how(priority=value),
        cases.NOT_AN_INT,
        {"negative": -1, "ten": 10, "huge": cases.HUGE},
    )
    yield from variants("retries", lambda _, value: how(retries=value), {"no such option": 3})
    yield from variants("legacy", lambda _, value: how(legacy=value), {"the library's own": True})
    yield from variants("celery_options", lambda _, value: how(celery_options=value), {"the library's own": {}})
    for name in (
        "start_to_close_timeout",
        "schedule_to_start_timeout",
        "schedule_to_close_timeout",
        "heartbeat_timeout",
    ):
        yield from variants(name, _timeout(how, name), cases.NOT_A_DURATION, cases.NEGATIVE, cases.ZERO)


def _timeout(how: Callable[..., Any], name: str) -> Callable[[Any, Any], Any]:
    return lambda _, value: how(**{name: value})


def policy(name: str) -> Callable[[Any, Any], Any]:
    return lambda _, value: RetryPolicy(**{name: value})


legacy_app = celery.Celery("legacy", set_as_current=False)


@legacy_app.task(name="bad.legacy")
def legacy(value: str) -> str:
    return value


ACTIVITIES: dict[str, list[tuple[str, Case]]] = {
    "activity.defn": [
        *variants("name", lambda _, value: activity.defn(name=value)(flows.undecorated), cases.NO_LABEL),
        *options(lambda **given: activity.defn(**given)(flows.undecorated)),
        *variants("function", lambda _, value: activity.defn(value), {
            "a number": 5, "a name": "charge", "a class": flows.Order, "a Celery task": legacy, "an activity": flows.charge,
            "a partial": functools.partial(flows.undecorated, "a"), "a generator": counting,
            "a hostile object": cases.Hostile()}),
        ("name: of a lambda", Case("name", lambda _: activity.defn(lambda: None))),
        ("value: without an annotation", Case("value", lambda _: activity.defn(bare))),
    ],
    "activity.of": [
        *variants("task", lambda _, value: activity.of(value), {
            "a function": flows.undecorated, "a name": "bad.legacy", "None": None, "a signature": legacy.s("a"),
            "a hostile object": cases.Hostile()}),
        *list(options(lambda **given: activity.of(legacy, **given)))[::5],
    ],
    "with_options": [*list(options(flows.charge.with_options))[::3]],
    "RetryPolicy": [
        *variants("initial_interval", policy("initial_interval"), cases.NOT_A_DURATION, cases.NEGATIVE, {"None": None}),
        *variants("maximum_interval", policy("maximum_interval"), cases.NOT_A_DURATION, cases.NEGATIVE, {
            "shorter than the first": timedelta(milliseconds=1)}),
        *variants("backoff_coefficient", policy("backoff_coefficient"), {
            "a half": 0.5, "zero": 0, "negative": -2, "NaN": float("nan"), "infinity": float("inf"), "a bool": True,
            "text": "2", "None": None, "huge": cases.HUGE, "a huge negative number": -cases.HUGE}),
        *variants("jitter", policy("jitter"), {
            "above one": 1.5, "negative": -0.1, "NaN": float("nan"), "a bool": True, "text": "0.1", "None": None, "huge": cases.HUGE}),
        *variants("maximum_attempts", policy("maximum_attempts"), cases.NOT_AN_INT, {"zero": 0, "negative": -1, "huge": cases.HUGE}),
        *variants("non_retryable_error_types", policy("non_retryable_error_types"), {
            "one class": ValueError, "one name": "ValueError", "a set": {ValueError}, "None": None, "a number": 5}),
        *variants("non_retryable_error_types", lambda _, value: RetryPolicy(non_retryable_error_types=[value]), cases.NO_LABEL, {
            "no exception": int, "an exception object": ValueError("x"), "None": None}),
    ],
    "ApplicationError": [
        *variants("type", lambda _, value: ApplicationError("no", type=value), cases.NOT_TEXT),
        *variants("non_retryable", lambda _, value: ApplicationError("no", non_retryable=value), {"text": "no", "a number": 1}),
        *variants("next_retry_delay", lambda _, value: ApplicationError("no", next_retry_delay=value), cases.NOT_A_DURATION),
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", params({**WORKFLOWS, **ACTIVITIES}))
def test_a_bad_definition_is_named_and_nothing_is_registered(case: Case) -> None:
    workflows, tasks = default_registry().names(), activities.all()

    def define(decorate: Define) -> Any:
        return decorate(plain)

    refuse(case.argument, lambda: case.call(define))
    assert default_registry().names() == workflows
    assert activities.all() == tasks


def test_two_workflows_of_one_name_are_told_with_both_places() -> None:
    with default_registry().scope(), pytest.raises(DuplicateDefinition) as caught:
        workflow.defn(name="bad.echo")(plain)
    assert "flows.py" in str(caught.value)
    assert "test_definitions.py" in str(caught.value)
    assert default_registry().get("bad.echo").run is flows.echo


def test_two_activities_of_one_name_are_told_with_both_places() -> None:
    with activities.scope(), pytest.raises(DuplicateDefinition) as caught:
        activity.defn(name="bad.charge")(flows.undecorated)
    assert "flows.py" in str(caught.value)
    assert "activity.defn(name=" in str(caught.value)


def test_a_delay_that_has_passed_counts_as_none() -> None:
    for passed in (-1, timedelta(seconds=-1), timedelta.min):
        assert ApplicationError("later", next_retry_delay=passed).next_retry_delay == timedelta(0)
    assert ApplicationError("later", next_retry_delay=1.5).next_retry_delay == timedelta(seconds=1.5)
