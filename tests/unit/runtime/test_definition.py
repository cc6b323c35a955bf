"""What the decorators refuse, where it is written."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.errors import DuplicateDefinition, InvalidArgument, UnknownWorkflowType
from orchestrator.runtime.definition import define
from orchestrator.runtime.registry import WorkflowRegistry, default_registry


async def plain(order: str, cents: int = 0) -> str:
    return order


class Approval:
    @workflow.run
    async def run(self, amount: int) -> str:
        return str(amount)

    @workflow.signal
    def approve(self, by: str) -> None: ...

    @workflow.signal(name="re-open")
    async def reopen(self) -> None: ...

    @workflow.query
    def approve_count(self) -> int:
        return 0


def refused(target: Any, **options: Any) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as caught:
        define(target, **options)
    return caught.value


def test_a_function_and_a_class_are_described() -> None:
    function, cls = define(plain, queue="orders", signals={"address": str, "stop": None}), define(Approval)
    assert (function.name, function.queue, function.cls) == ("plain", "orders", None)
    assert (function.input_names, function.input_hints, function.result_hint) == (("order", "cents"), (str, int), str)
    assert function.declared_signals() == ("address", "stop")
    assert (function.signals["address"].hints, function.signals["stop"].hints) == ((str,), ())
    assert (cls.name, cls.cls, cls.input_hints) == ("Approval", Approval, (int,))
    assert cls.declared_signals() == ("approve", "re-open")
    assert (cls.signals["re-open"].handler, cls.signals["re-open"].is_async) == ("reopen", True)
    assert cls.queries["approve_count"].result_hint is int
    assert "test_definition.py" in cls.place
    assert cls.fingerprint == function.fingerprint != ""


def test_the_decorator_returns_what_it_decorates_and_registers_it() -> None:
    with default_registry().scope():
        assert workflow.defn(plain) is plain
        assert workflow.defn(name="other", queue="q")(Approval) is Approval
        registry = default_registry()
        assert registry.get("plain").run is plain
        for target in (Approval, Approval.run, Approval().run, "other"):
            assert registry.resolve(target).cls is Approval
    with pytest.raises(UnknownWorkflowType, match="other"):
        default_registry().get("other")


@pytest.mark.parametrize("target", [print, 7, len, "name", functools.partial(plain), Approval(), staticmethod(plain)])
def test_only_functions_and_classes_are_workflows(target: Any) -> None:
    assert refused(target).argument in ("workflow", "run")


def sync() -> None: ...


def generator() -> Any:
    yield 1


async def async_generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (sync, "plain function"),
        (generator, "a generator"),
        (async_generator, "async generator"),
        (lambda: None, "lambda"),
    ],
)
def test_run_is_a_plain_async_def(target: Any, text: str) -> None:
    assert text in str(refused(target))
    with pytest.raises(InvalidArgument, match=text):
        workflow.run(target)


async def unannotated(order: str, cents) -> None: ...  # type: ignore[no-untyped-def]


async def keyword(*, cents: int) -> None: ...


async def many(*cents: int) -> None: ...


async def named(**cents: int) -> None: ...


@pytest.mark.parametrize("target", [unannotated, keyword, many, named])
def test_an_input_that_can_not_be_stored_by_position_and_type_is_refused_by_name(target: Any) -> None:
    assert refused(target).argument == "cents"


def test_a_class_has_exactly_one_run_of_its_own() -> None:
    class NoRun: ...

    class TwoRuns(Approval):
        @workflow.run
        async def other(self) -> None: ...

    class Inherits(Approval): ...

    class Overrides(Approval):
        @workflow.run
        async def run(self, amount: int) -> str:
            return "other"

    assert "no method with @workflow.run" in str(refused(NoRun))
    assert "2 methods with @workflow.run" in str(refused(TwoRuns))
    assert "inherits run()" in str(refused(Inherits))
    assert define(Overrides).declared_signals() == ("approve", "re-open")


def test_an_override_stays_the_handler_without_being_decorated_again() -> None:
    class Careful(Approval):
        async def run(self, amount: int) -> str:
            return "careful"

        def approve(self, by: str) -> None: ...

        def approve_count(self) -> int:
            return 1

    definition = define(Careful)
    assert definition.run is Careful.run
    assert definition.declared_signals() == ("approve", "re-open")
    assert list(definition.queries) == ["approve_count"]

    class Removes(Approval):
        @workflow.run
        async def run(self, amount: int) -> str: ...

        approve = None  # type: ignore[assignment]

    assert refused(Removes).argument == "approve"


def test_handlers_that_clash_are_refused() -> None:
    class TwoSignals(Approval):
        @workflow.run
        async def run(self, amount: int) -> str: ...

        @workflow.signal(name="approve")
        def again(self) -> None: ...

    class TwoQueries(Approval):
        @workflow.run
        async def run(self, amount: int) -> str: ...

        @workflow.query(name="approve_count")
        def again(self) -> int: ...

    class TwoDynamic(Approval):
        @workflow.run
        async def run(self, amount: int) -> str: ...

        @workflow.signal(dynamic=True)
        def one(self, name: str, args: list[Any]) -> None: ...

        @workflow.signal(dynamic=True)
        def two(self, name: str, args: list[Any]) -> None: ...

    assert refused(TwoSignals).argument == "again"
    assert refused(TwoQueries).argument == "again"
    assert refused(TwoDynamic).argument == "two"
    assert "has a handler already" in str(refused(Approval, signals={"approve": str}))


def test_a_signal_and_a_query_may_share_a_name() -> None:
    class Shared:
        @workflow.run
        async def run(self) -> None: ...

        @workflow.signal(name="stage")
        def set_stage(self, value: str) -> None: ...

        @workflow.query
        def stage(self) -> str: ...

    definition = define(Shared)
    assert (list(definition.signals), list(definition.queries)) == (["stage"], ["stage"])


def test_handlers_are_methods_of_the_right_kind() -> None:
    async def later(self: Any) -> int: ...

    def yields(self: Any) -> Any:
        yield 1

    with pytest.raises(InvalidArgument, match="query answers at once"):
        workflow.query(later)
    with pytest.raises(InvalidArgument, match="generator"):
        workflow.signal(yields)
    with pytest.raises(InvalidArgument, match="staticmethod"):
        workflow.signal(staticmethod(sync))  # type: ignore[type-var]
    with pytest.raises(InvalidArgument, match="leave the name out"):
        workflow.signal(name="x", dynamic=True)


@pytest.mark.parametrize("name", ["", " padded ", "a\x00b", "\ud800", "x" * 256, 7])
def test_bad_names_are_refused(name: Any) -> None:
    assert refused(plain, name=name).argument == "name"
    assert refused(plain, queue=name).argument == "queue"
    with pytest.raises(InvalidArgument) as caught:
        workflow.signal(name=name)(sync)
    assert caught.value.argument == "name"
    with pytest.raises(InvalidArgument):
        define(plain, signals={name: str})


def test_signals_are_a_mapping() -> None:
    assert refused(plain, signals=["address"]).argument == "signals"


def test_init_takes_no_arguments() -> None:
    class Takes:
        def __init__(self, amount: int) -> None: ...

        @workflow.run
        async def run(self) -> None: ...

    assert refused(Takes).argument == "amount"


def test_a_method_without_self_is_refused() -> None:
    class NoSelf:
        @workflow.run
        async def run() -> None: ...  # type: ignore[misc]

    assert refused(NoSelf).argument == "self"


def test_two_places_of_one_name_are_an_error_and_one_place_twice_is_a_reload() -> None:
    registry = WorkflowRegistry()

    def made(value: int) -> Any:
        async def shared() -> int:
            return value

        return shared

    def elsewhere() -> Any:
        async def shared() -> int:
            return 3

        return shared

    registry.register(define(made(1)))
    second = define(made(2))
    registry.register(second)
    assert registry.get("shared") is second
    with pytest.raises(DuplicateDefinition, match=r"made\.<locals>\.shared .*elsewhere\.<locals>\.shared"):
        registry.register(define(elsewhere()))
    assert registry.names() == ["shared"]


def test_what_is_no_workflow_is_said_so() -> None:
    registry = WorkflowRegistry()
    for target in (plain, Approval, [], 7):
        with pytest.raises(InvalidArgument, match="is no workflow"):
            registry.resolve(target)
    registry.register(define(plain))
    with pytest.raises(UnknownWorkflowType, match="Did you mean 'plain'"):
        registry.resolve("plian")


def test_hints_of_local_and_later_classes_are_resolved() -> None:
    class Local:
        pass

    async def takes(value: Local, later: Later) -> Local:
        return value

    definition = define(takes)
    assert definition.input_hints == (Local, Later)
    assert definition.result_hint is Local


class Later:
    pass
