"""What `@activity.defn` accepts, refuses and makes."""

import inspect
import pickle
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, Task, chain, group, shared_task
from celery.contrib.testing.app import TestApp as UnitApp

from orchestrator import RetryPolicy, activity
from orchestrator.activity.definition import registry
from orchestrator.errors import DuplicateDefinition, InvalidArgument, NotInActivity, NotInWorkflow


@pytest.fixture(autouse=True)
def own_names():
    """Activities of these tests are forgotten after each."""
    with registry.scope():
        yield


@pytest.fixture
def app() -> Celery:
    return UnitApp(set_as_current=True)


@activity.defn(name="unit.charge", queue="payments")
def charge(order_id: str, cents: int = 1) -> str:
    """Takes the money."""
    return f"{order_id} {cents}"


@activity.defn(name="unit.ship")
async def ship(order_id: str) -> str:
    return order_id.upper()


@activity.defn(name="unit.facts")
def facts() -> dict[str, Any]:
    info = activity.info()
    return {
        "in_workflow": activity.in_workflow(),
        "workflow": info.workflow_id,
        "key": info.idempotency_key,
        "task": info.task_id,
    }


def test_an_activity_is_a_celery_task_to_everybody():
    assert isinstance(charge, Task)
    assert isinstance(charge, activity.Activity)
    assert charge.name == "unit.charge"
    assert (charge.__name__, charge.__doc__) == ("charge", "Takes the money.")
    assert list(inspect.signature(charge).parameters) == ["order_id", "cents"]


def test_making_an_activity_touches_no_app(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("celery._state.get_current_app", lambda: pytest.fail("an app was asked for"))

    @activity.defn
    def quiet(value: int) -> int:
        return value

    assert quiet(1) == 1
    assert quiet.with_options(queue="slow").name == "quiet"
    assert bool(quiet)
    assert isinstance(quiet, Task)
    assert "quiet" in repr(quiet)


def test_a_plain_call_runs_the_function(app: Celery):
    assert charge("42", cents=3) == "42 3"


def test_a_plain_call_of_an_async_one_gives_a_coroutine():
    coroutine = ship("a")
    assert inspect.iscoroutine(coroutine)
    coroutine.close()


def test_each_app_has_its_own_task_and_the_object_is_the_current_apps(app: Celery):
    other = UnitApp(set_as_current=False)
    mine, theirs = app.tasks["unit.charge"], other.tasks["unit.charge"]
    assert mine is not theirs
    assert mine.app is app
    assert theirs.app is other
    assert charge.app is app


def test_an_activity_defined_after_an_app_was_finalized_is_registered_too(app: Celery):
    app.finalize()

    @activity.defn
    def late(value: int) -> int:
        return value

    assert app.tasks["late"].run(3) == 3


def test_it_survives_pickling(app: Celery):
    again = pickle.loads(pickle.dumps(charge))
    assert again is app.tasks["unit.charge"]


def test_signatures_chains_and_groups_work(app: Celery):
    assert charge.s("42").task == "unit.charge"
    assert (charge.s("1") | charge.si("2")).apply().get() == "2 1"
    assert chain(charge.s("1"), ship.s()).apply().get() == "1 1".upper()
    assert group(charge.s("1"), charge.s("2")).apply().get() == ["1 1", "2 1"]


def test_an_async_activity_runs_as_a_celery_task(app: Celery):
    assert ship.apply(("abc",)).get() == "ABC"


def test_outside_a_workflow_the_task_has_an_id_and_no_workflow(app: Celery):
    outcome = facts.apply(task_id="task-7").get()
    assert outcome == {"in_workflow": False, "workflow": None, "key": "task-7", "task": "task-7"}


def test_in_a_plain_call_there_is_nothing_to_ask():
    with pytest.raises(NotInActivity, match="ActivityEnvironment"):
        facts()
    assert activity.in_workflow() is False


async def execute_outside() -> None:
    await charge.execute("42")


def test_execute_outside_a_workflow_is_refused():
    with pytest.raises(NotInWorkflow, match=r"unit\.charge"):
        execute_outside().send(None)
    with pytest.raises(NotInWorkflow):
        charge.start("42")


def test_delivery_does_not_depend_on_the_apps_settings():
    app = UnitApp(set_as_current=False)
    app.conf.task_acks_late = False
    app.conf.task_reject_on_worker_lost = False
    app.conf.task_acks_on_failure_or_timeout = False
    task = app.tasks["unit.charge"]
    assert (task.acks_late, task.reject_on_worker_lost, task.acks_on_failure, task.acks_on_timeout) == (True,) * 4


def test_a_custom_task_base_of_the_app_is_kept():
    class TeamTask(Task):
        team = "payments"

    app = Celery("team", task_cls=TeamTask, broker="memory://", set_as_current=False)
    task = app.tasks["unit.charge"]
    assert isinstance(task, activity.Activity)
    assert isinstance(task, TeamTask)
    assert task.team == "payments"


def test_two_activities_of_one_name_are_an_error_that_names_both_places():
    @activity.defn(name="unit.twice")
    def first(value: int) -> int:
        return value

    with pytest.raises(DuplicateDefinition) as caught:

        @activity.defn(name="unit.twice")
        def second(value: int) -> int:
            return value

    assert "first" in str(caught.value)
    assert "second" in str(caught.value)


def test_importing_the_same_place_again_replaces_the_activity():
    def define(result: int) -> Any:
        @activity.defn(name="unit.again")
        def again() -> int:
            return result

        return again

    define(1)
    assert define(2)() == 2
    definition = registry.get("unit.again")
    assert definition is not None
    assert definition.function() == 2


def test_a_celery_task_of_the_same_name_is_an_error_that_names_both():
    app = Celery("team", broker="memory://", set_as_current=False)

    @app.task(name="unit.charge", shared=False, lazy=False)
    def plain(value):
        return value

    with pytest.raises(DuplicateDefinition, match=r"unit\.charge.*test_definition:charge.*share one name"):
        app.finalize()


def test_decorating_a_celery_task_is_refused_and_points_to_of(app: Celery):
    @shared_task(name="unit.plain")
    def plain(value: int) -> int:
        return value

    with pytest.raises(InvalidArgument, match=r"activity\.of"):
        activity.defn(plain)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"queue": ""}, "queue"),
        ({"queue": " x"}, "queue"),
        ({"queue": 3}, "queue"),
        ({"retry_policy": {"maximum_attempts": 3}}, "retry_policy"),
        ({"start_to_close_timeout": timedelta(seconds=-1)}, "start_to_close_timeout"),
        ({"start_to_close_timeout": 0}, "start_to_close_timeout"),
        ({"start_to_close_timeout": float("nan")}, "start_to_close_timeout"),
        ({"start_to_close_timeout": True}, "start_to_close_timeout"),
        ({"schedule_to_start_timeout": "5"}, "schedule_to_start_timeout"),
        ({"schedule_to_close_timeout": timedelta.max}, "schedule_to_close_timeout"),
        ({"heartbeat_timeout": object()}, "heartbeat_timeout"),
        ({"priority": 10}, "priority"),
        ({"priority": -1}, "priority"),
        ({"priority": True}, "priority"),
        ({"priority": 1.5}, "priority"),
        ({"timeout": 3}, "timeout"),
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 256}, "name"),
    ],
)
def test_a_wrong_option_is_refused_where_it_is_written_and_named(options: dict[str, Any], argument: str):
    def plain(value: int) -> int:
        return value

    with pytest.raises(InvalidArgument) as caught:
        activity.defn(**options)(plain)
    assert caught.value.argument == argument
    if argument != "name":
        with pytest.raises(InvalidArgument):
            charge.with_options(**options)


def test_an_input_without_annotation_is_refused_and_named():
    with pytest.raises(InvalidArgument, match=r"^cents: has no type annotation"):

        @activity.defn
        def bare(order_id: str, cents) -> str:
            return f"{order_id}{cents}"


@pytest.mark.parametrize("target", [3, "charge", object(), int, dict])
def test_what_is_no_function_is_refused(target: Any):
    with pytest.raises(InvalidArgument, match="function"):
        activity.defn(target)


def test_options_given_later_add_to_those_of_the_definition():
    slow = charge.with_options(start_to_close_timeout=60)
    assert slow.call_options.queue == "payments"
    assert slow.call_options.start_to_close_timeout == timedelta(seconds=60)
    both = slow.with_options(queue="slow", retry_policy=RetryPolicy(maximum_attempts=2))
    assert both.call_options.queue == "slow"
    assert both.call_options.start_to_close_timeout == timedelta(seconds=60)
    assert charge.call_options.start_to_close_timeout is None
