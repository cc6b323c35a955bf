"""Every call of the client and of a handle, given what it refuses: a typed error, and nothing stored."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from orchestrator import WorkflowHandle, workflow
from orchestrator.client import WorkflowClient
from orchestrator.errors import (
    OrchestratorError,
    PayloadError,
    QueryError,
    UndeclaredSignal,
    WorkflowAlreadyStarted,
    WorkflowClosed,
    WorkflowNotFound,
)
from orchestrator.runtime.registry import default_registry
from orchestrator.store.database import Database
from orchestrator.testing import WorkflowEnvironment
from tests.acceptance.bad_input import cases, flows
from tests.acceptance.bad_input.cases import Case, params, refuse, stored, variants
from tests.conformance.engine.world import World


@dataclass
class Calls:
    """A client, open runs of its, and how its methods are called."""

    client: WorkflowClient
    db: Database
    twins: bool = False
    settle: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.client.start(flows.waiter, id="waiter")
        self.client.start(flows.Approval.run, 1, id="approval")
        self.client.start(flows.echo, "a", id="closed")
        self.settle()
        self.before = stored(self.db)

    def do(self, method: str, *args: Any, **options: Any) -> Any:
        """Calls a method of the client, or its async twin."""
        return self._call(self.client, method, args, options)

    def to(self, handle: str, method: str, *args: Any, **options: Any) -> Any:
        """Calls a method of a run's handle, or its async twin."""
        return self._call(self.client.get_handle(handle), method, args, options)

    def _call(self, owner: Any, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if not self.twins:
            return getattr(owner, method)(*args, **options)

        async def call() -> Any:
            return await getattr(owner, f"a{method}")(*args, **options)

        return asyncio.run(call())


def start(name: str) -> Callable[[Calls, Any], Any]:
    return lambda calls, value: calls.do("start", flows.waiter, **{name: value})


def wanted(name: str) -> Callable[[Calls, Any], Any]:
    return lambda calls, value: calls.do("list", **{name: value})


def to(handle: str, method: str, *before: Any, option: str = "") -> Callable[[Calls, Any], Any]:
    """A call of a handle whose last positional argument, or one option, is the value."""
    if option:
        return lambda calls, value: calls.to(handle, method, *before, **{option: value})
    return lambda calls, value: calls.to(handle, method, *before, value)


def cursor(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


NOT_A_WORKFLOW: dict[str, Any] = {
    "an undecorated function": flows.undecorated,
    "a lambda": lambda: None,
    "an undecorated class": flows.Order,
    "an activity": flows.charge,
    "a signal": flows.Approval.approve,
    "None": None,
    "an unknown name": "bad.eccho",
}
NOT_A_CONNECTION: dict[str, Any] = {"a URL": "sqlite://", "a number": 5, "an engine": object()}


@workflow.defn(name="bad.locked")
async def locked(lock: threading.Event) -> None:
    """Takes what has no JSON form."""


NOT_A_CURSOR: dict[str, Any] = {
    "text": "page 2",
    "empty": "",
    "a number": 5,
    "JSON of another kind": cursor({"a": 1}),
    "a bool": cursor([True, "run"]),
    "a negative number": cursor([-1, "run"]),
    "a number that no database holds": cursor([2**63, "run"]),
    "a lone surrogate": cursor([1, "\ud800"]),
    "NUL": cursor([1, "\x00"]),
    "too deep": cursor("[" * 100_000),
}
NOT_A_MESSAGE: dict[str, Any] = {
    "None": None,
    "a class": flows.Approval,
    "the run method": flows.Approval.run,
    "another class's method": flows.Other.approve,
    "an undecorated function": flows.undecorated,
    "a lambda": lambda: None,
}
LONG = "x" * 2_100_000

CLIENT: dict[str, list[tuple[str, Case]]] = {
    "start": [
        *variants("run", lambda calls, value: calls.do("start", value), cases.NO_LABEL, NOT_A_WORKFLOW),
        *variants("id", start("id"), cases.NO_LABEL),
        *variants("queue", start("queue"), cases.NO_LABEL),
        *variants("request_id", start("request_id"), cases.NO_LABEL),
        *variants("id_reuse_policy", start("id_reuse_policy"), cases.NOT_TEXT, {"None": None, "unknown": "reject"}),
        *variants("memo", start("memo"), cases.NOT_STORABLE),
        *variants("connection", start("connection"), NOT_A_CONNECTION),
        *variants(
            "value",
            lambda calls, value: calls.do("start", flows.echo, value),
            cases.NOT_TEXT,
            {"None": None, "a lone surrogate": "\ud800"},
        ),
        *variants("value", lambda calls, value: calls.do("start", flows.anything, value), cases.NOT_STORABLE, without=["over the limit"]),
        *variants("times", lambda calls, value: calls.do("start", flows.echo, "a", value), cases.NOT_AN_INT),
        *variants("given", lambda calls, value: calls.do("start", flows.order, value), cases.NOT_TEXT, {"a dict": {"id": "1", "cents": 5}}),
        *variants("given", lambda calls, value: calls.do("start", flows.order, flows.Order("1", value)), cases.NOT_AN_INT),
        *variants("arguments", lambda calls, value: calls.do("start", flows.echo, *value), {"too many": ("a", 1, 2), "over the limit": (LONG,)}),
        ("value: missing", Case("value", lambda calls: calls.do("start", flows.echo))),
        *variants("lock", lambda calls, value: calls.do("start", locked, value), {"of a type without JSON": threading.Event(), "of another": 5}),
        ("arguments: of a name that is known elsewhere", Case("arguments", lambda calls: calls.do("start", "elsewhere", object(), queue="far"))),
    ],
    "list": [
        *variants("status", wanted("status"), cases.NOT_TEXT, {"unknown": "DONE", "in lower case": "running", "empty": ""}),
        *variants("attention", wanted("attention"), cases.NOT_TEXT, {"unknown": "stuck", "empty": ""}),
        *variants("workflow_type", wanted("workflow_type"), cases.NO_LABEL),
        *variants("workflow_id", wanted("workflow_id"), cases.NO_LABEL),
        *variants("limit", wanted("limit"), cases.NOT_AN_INT, {"zero": 0, "too many": 1001, "None": None, "huge": cases.HUGE}),
        *variants("cursor", wanted("cursor"), NOT_A_CURSOR, {"a hostile object": cases.Hostile()}),
    ],
}  # fmt: skip

HANDLE: dict[str, list[tuple[str, Case]]] = {
    "signal": [
        *variants("signal", to("approval", "signal"), cases.NO_LABEL, NOT_A_MESSAGE, {"a query": flows.Approval.pending}),
        *variants("signal_id", to("waiter", "signal", "address", "Main St", option="signal_id"), cases.NO_LABEL),
        *variants("value", to("waiter", "signal", "address"), cases.NOT_TEXT, {"a lone surrogate": "\ud800"}),
        *variants("by", to("approval", "signal", flows.Approval.approve), cases.NOT_TEXT),
        *variants("level", to("approval", "signal", "approve", "ann"), cases.NOT_AN_INT),
        *variants("arguments", lambda calls, value: calls.to("waiter", "signal", *value), {
            "too many": ("address", "a", "b"), "for one without a value": ("stop", 1), "over the limit": ("address", LONG)}),
        ("by: missing", Case("by", lambda calls: calls.to("approval", "signal", "approve"))),
        *variants("connection", to("waiter", "signal", "address", "Main St", option="connection"), NOT_A_CONNECTION),
    ],
    "query": [
        *variants("query", to("approval", "query"), cases.NO_LABEL, NOT_A_MESSAGE, {"a signal": flows.Approval.approve}),
        *variants("query", to("nobody", "query"), cases.NO_LABEL, {"None": None}),
        *variants("plus", to("approval", "query", "pending"), cases.NOT_AN_INT),
        *variants("arguments", to("approval", "query", "pending", 1), {"too many": 2}),
        *variants("arguments", to("approval", "query", "unknown"), cases.NOT_STORABLE),
    ],
    "result": [
        *variants("timeout", to("waiter", "result"), cases.NOT_A_DURATION, cases.NEGATIVE),
        *variants("on_blocked", to("waiter", "result", option="on_blocked"), cases.NOT_TEXT, {"unknown": "ignore", "None": None}),
    ],
    "cancel": [*variants("reason", to("waiter", "cancel"), cases.NO_REASON)],
    "terminate": [*variants("reason", to("waiter", "terminate"), cases.NO_REASON)],
    "history": [
        *variants("after", to("closed", "history"), cases.NOT_AN_INT, {"negative": -1, "a number that no database holds": 2**63, "huge": cases.HUGE}),
        *variants("limit", to("closed", "history", None), cases.NOT_AN_INT, {"zero": 0, "too many": 1001, "None": None}),
        *variants("descending", to("closed", "history", option="descending"), cases.NOT_A_FLAG),
    ],
}  # fmt: skip

PLAIN: dict[str, list[tuple[str, Case]]] = {
    "get_handle": [
        *variants("id", lambda calls, value: calls.client.get_handle(value), cases.NO_LABEL, {"None": None}),
        *variants("run_id", lambda calls, value: calls.client.get_handle("waiter", value), cases.NO_LABEL),
    ],
    "get_handle_for": [
        *variants("run", lambda calls, value: calls.client.get_handle_for(value, "waiter"), cases.NO_LABEL, NOT_A_WORKFLOW),
        *variants("id", lambda calls, value: calls.client.get_handle_for(flows.waiter, value), cases.NO_LABEL, {"None": None}),
        *variants("run_id", lambda calls, value: calls.client.get_handle_for(flows.waiter, "waiter", value), cases.NO_LABEL),
    ],
    "definition_of": [*variants("workflow_type", lambda calls, value: calls.client.definition_of(value), cases.NO_LABEL)],
    "typed_values": [*variants("times", lambda calls, value: calls.client.typed_values(
        default_registry().get("bad.echo").signature, ("a", value)), {"text": "many", "a bool": True})],
}  # fmt: skip
"""They reach for nothing, so they have no twin."""

TAKES_NOTHING = {"describe", "flush", "with_plain_values"}


@pytest.fixture(scope="module")
def environment() -> Iterator[WorkflowEnvironment]:
    with WorkflowEnvironment() as made:
        yield made


@pytest.fixture(scope="module")
def calls(environment: WorkflowEnvironment) -> Calls:
    return Calls(environment, environment._built.db)


def check(calls: Calls, case: Case) -> None:
    refuse(case.argument, lambda: case.call(calls))
    assert stored(calls.db) == calls.before


@pytest.mark.parametrize("case", params({**CLIENT, **HANDLE, **PLAIN}))
def test_a_bad_argument_is_named_and_nothing_is_stored(calls: Calls, case: Case) -> None:
    check(calls, case)


@pytest.mark.parametrize("method", [*CLIENT, *HANDLE])
def test_the_async_twin_refuses_the_same(environment: WorkflowEnvironment, calls: Calls, method: str) -> None:
    twins = Calls(environment, calls.db, twins=True)
    found = {**CLIENT, **HANDLE}[method]
    for _, case in found[:: max(1, len(found) // 12)]:
        check(twins, case)


def test_no_public_call_is_left_out() -> None:
    def methods(owner: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(owner, inspect.isfunction) if not name.startswith("_")}

    public = methods(WorkflowClient) | methods(WorkflowHandle)
    twins = {name for name in public if name[1:] in public and name.startswith("a")}
    assert public - twins == {*CLIENT, *HANDLE, *PLAIN} | TAKES_NOTHING
    assert twins == {f"a{name}" for name in {*CLIENT, *HANDLE, "describe", "flush"}}


def test_both_databases_are_left_alone(database_url: str) -> None:
    """A selection, since what refuses stands in front of the database."""
    world = World(database_url, default_registry())
    calls = Calls(WorkflowClient(lambda: world.engine), world.db, settle=world.work)
    for table in ({**CLIENT, **HANDLE, **PLAIN}).values():
        for _, case in table[::5]:
            check(calls, case)
    world.db.dispose()


UNKNOWN: Mapping[str, tuple[type[OrchestratorError], str, Callable[[Calls], Any]]] = {
    "an id nobody has": (WorkflowNotFound, "'nobody'", lambda calls: calls.to("nobody", "describe")),
    "its history": (WorkflowNotFound, "'nobody'", lambda calls: calls.to("nobody", "history")),
    "its result": (WorkflowNotFound, "'nobody'", lambda calls: calls.to("nobody", "result", 0)),
    "its cancellation": (WorkflowNotFound, "'nobody'", lambda calls: calls.to("nobody", "cancel")),
    "its termination": (WorkflowNotFound, "'nobody'", lambda calls: calls.to("nobody", "terminate")),
    "a query of it": (WorkflowNotFound, "'nobody'", lambda calls: calls.to("nobody", "query", "pending")),
    "a signal to it": (WorkflowNotFound, "'nobody'", lambda calls: calls.to("nobody", "signal", "go")),
    "a run id nobody has": (WorkflowNotFound, "run no-run", lambda calls: calls.client.get_handle("waiter", "no-run").describe()),
    "a run of another id": (WorkflowNotFound, "'waiter'", lambda calls: calls.client.get_handle(
        "waiter", calls.client.get_handle("approval").describe().run_id).terminate()),
    "an undeclared signal": (UndeclaredSignal, "'adress'", lambda calls: calls.to("waiter", "signal", "adress", "Main St")),
    "an unknown query": (QueryError, "'missing'", lambda calls: calls.to("approval", "query", "missing")),
    "a query of a function": (QueryError, "'pending'", lambda calls: calls.to("waiter", "query", "pending")),
    "a signal to what has ended": (WorkflowClosed, "'closed'", lambda calls: calls.to("closed", "signal", "go")),
    "a cancellation of what has ended": (WorkflowClosed, "'closed'", lambda calls: calls.to("closed", "cancel")),
    "a termination of what has ended": (WorkflowClosed, "'closed'", lambda calls: calls.to("closed", "terminate")),
    "an id that other input has": (WorkflowAlreadyStarted, "'closed'", lambda calls: calls.do("start", flows.echo, "b", id="closed")),
    "an id that another type has": (WorkflowAlreadyStarted, "'waiter'", lambda calls: calls.do("start", flows.echo, "a", id="waiter")),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_there_is_told_by_name_and_nothing_is_stored(calls: Calls, name: str) -> None:
    kind, shown, call = UNKNOWN[name]
    with pytest.raises(kind) as caught:
        call(calls)
    assert type(caught.value) is kind
    assert shown in str(caught.value)
    assert stored(calls.db) == calls.before


def test_the_limit_of_payloads_is_the_settings_and_is_named(calls: Calls) -> None:
    error = refuse("arguments", lambda: calls.do("start", flows.anything, LONG))
    assert isinstance(error, PayloadError)
    assert "orchestrator_payload_limit" in error.reason
    assert "2,097,152" in error.reason
