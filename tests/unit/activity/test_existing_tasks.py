"""Existing Celery tasks, names and signatures as activities."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from celery import Celery, Task, chain, group, shared_task
from celery.contrib.testing.app import TestApp as UnitApp
from pydantic import BaseModel

from orchestrator import activity
from orchestrator.activity.calls import decode_call, encode_call
from orchestrator.activity.legacy import definition_of
from orchestrator.activity.resolving import resolve
from orchestrator.errors import InvalidArgument, PayloadError
from orchestrator.model.options import LEGACY_ACTIVITY_OPTIONS
from orchestrator.model.payloads import PayloadConverter


class Money(BaseModel):
    cents: int


@shared_task(name="unit.old.add")
def add(left: int, right: int = 2) -> int:
    return left + right


@activity.defn(name="unit.old.new", queue="new")
def new(value: int) -> int:
    return value


@pytest.fixture
def app() -> Celery:
    return UnitApp(set_as_current=True)


def round_trip(task: Task[..., Any], *args: Any, **kwargs: Any) -> Any:
    definition, converter = definition_of(task), PayloadConverter()
    return decode_call(converter, definition, encode_call(converter, definition, args, kwargs).data)


def test_a_lazy_task_is_not_made_by_naming_it():
    app = Celery("team", broker="memory://", set_as_current=False)

    @app.task(shared=False)
    def lazy(value):
        return value

    reference = activity.of(lazy, queue="slow")
    assert not lazy.__evaluated__()
    assert reference.name.endswith("lazy")


def test_one_attempt_of_ours_and_no_time_limit_unless_said(app: Celery):
    options = activity.of(add).call_options.merged(LEGACY_ACTIVITY_OPTIONS)
    assert options.retry_policy is not None
    assert options.retry_policy.maximum_attempts == 1
    assert options.start_to_close_timeout is None


@pytest.mark.parametrize("target", [len, 3, "unit.old.add", None])
def test_what_is_no_task_is_refused(target: Any):
    with pytest.raises(InvalidArgument, match="Celery task"):
        activity.of(target)


def test_arguments_are_checked_against_the_tasks_own_signature(app: Celery):
    with pytest.raises(InvalidArgument, match="left"):
        round_trip(add)
    with pytest.raises(InvalidArgument, match="middle"):
        round_trip(add, 1, middle=2)


def test_a_bound_tasks_self_is_not_an_argument(app: Celery):
    @app.task(bind=True, shared=False)
    def bound(self, value: int):
        return value

    assert round_trip(bound, 1) == ([1], {})
    with pytest.raises(InvalidArgument):
        round_trip(bound, 1, 2)


def test_a_class_based_tasks_self_is_not_an_argument(app: Celery):
    class Old(Task):
        name = "unit.old.class"

        def run(self, value):
            return value

    task = app.register_task(Old())
    assert round_trip(task, 5) == ([5], {})


def test_values_reach_a_plain_task_as_celerys_json_brings_them(app: Celery):
    @app.task(shared=False)
    def takes(*values, **more):
        return None

    uuid, when = UUID(int=7), datetime(2026, 1, 2, 3, tzinfo=UTC)
    args, kwargs = round_trip(takes, when, date(2026, 1, 2), Decimal("1.50"), uuid, (1, 2), more={"deep": Decimal(2)})
    assert args == [when, date(2026, 1, 2), Decimal("1.50"), uuid, [1, 2]]
    assert kwargs == {"more": {"deep": Decimal(2)}}


def test_a_model_reaches_a_plain_task_as_plain_json(app: Celery):
    @app.task(pydantic=True, shared=False)
    def takes(amount: Money) -> Money:
        return amount

    assert round_trip(takes, Money(cents=5)) == ([{"cents": 5}], {})


def test_what_celery_could_not_send_is_refused_by_name(app: Celery):
    with pytest.raises(PayloadError) as caught:
        round_trip(add, object())
    assert caught.value.argument == "left"


def test_a_result_that_does_not_fit_a_plain_tasks_annotation_reaches_the_workflow_as_it_is(app: Celery):
    hint, converter = definition_of(add).result_hint, PayloadConverter()
    for value in (5, None, {"a": [1]}, "text"):
        assert converter.decode(converter.encode(value).data, hint) == value


@pytest.mark.parametrize("annotation", [None, Any, Any | None, int | None, object])
def test_whatever_a_plain_task_says_it_returns_its_result_can_be_read(app: Celery, annotation: Any):
    def told():
        return None

    told.__annotations__["return"] = annotation
    hint, converter = definition_of(app.task(shared=False)(told)).result_hint, PayloadConverter()
    for value in (5, None, {"a": [1]}, "text"):
        assert converter.decode(converter.encode(value).data, hint) == value


def test_that_celery_runs_a_lost_task_again_is_remembered(app: Celery):
    @app.task(shared=False, acks_late=True, reject_on_worker_lost=True)
    def again():
        return None

    assert definition_of(again).options.celery_options == {"reruns_when_lost": True}
    assert definition_of(add).options.celery_options == {}


def test_names_and_activities_are_resolved(app: Celery):
    assert resolve(new)[0] is new
    assert resolve("unit.old.new")[0].call_options.queue == "new"
    assert resolve("unit.old.add")[0].definition.legacy is True
    unknown = resolve("somewhere.else")[0].definition
    assert (unknown.function, unknown.legacy) == (None, False)
    with pytest.raises(InvalidArgument):
        resolve("")
    with pytest.raises(InvalidArgument, match="activity"):
        resolve(42)


def test_a_signature_brings_its_arguments_and_options(app: Celery):
    signature = add.s(1, right=5).set(queue="slow", priority=3, time_limit=9)
    call, args, kwargs = resolve(signature)
    assert (args, kwargs) == ((1,), {"right": 5})
    assert (call.call_options.queue, call.call_options.priority) == ("slow", 3)
    assert call.call_options.celery_options["time_limit"] == 9


@pytest.mark.parametrize("option", ["countdown", "expires", "link", "eta"])
def test_an_option_of_a_signature_that_cannot_be_kept_is_refused_by_name(app: Celery, option: str):
    with pytest.raises(InvalidArgument) as caught:
        resolve(add.s(1).set(**{option: add.s(2) if option == "link" else 10}))
    assert caught.value.argument == option


def test_a_canvas_of_several_tasks_is_refused_with_what_to_write_instead(app: Celery):
    for canvas in (chain(add.s(1), add.s()), group(add.s(1), add.s(2))):
        with pytest.raises(InvalidArgument, match="gather"):
            resolve(canvas)
        with pytest.raises(InvalidArgument, match="not a (chain|group): .*for each task"):
            activity.of(canvas)
    with pytest.raises(InvalidArgument, match="execute_activity"):
        activity.of(add.s(1))
