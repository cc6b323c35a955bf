"""What stands in for activities."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from orchestrator.errors import (
    ActivityTimeout,
    ApplicationError,
    EnvironmentStuck,
    InvalidArgument,
    PayloadError,
    WorkflowFailed,
)
from orchestrator.testing import WorkflowEnvironment
from tests.unit.testing import shop


def test_a_stub_returns_instead_of_the_activity(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, returns="nothing was charged")
    assert env.run(shop.pay, "42", 999) == "nothing was charged"


def test_a_stub_that_raises_is_retried_by_the_activity_s_own_policy(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, raises=shop.GatewayDown("try later"))
    with pytest.raises(WorkflowFailed, match="try later") as caught:
        env.run(shop.pay, "42", 999)
    assert [call.attempt for call in env.calls(shop.charge)] == list(range(1, 11))
    assert caught.value.cause is not None


@pytest.mark.parametrize(
    "error", [shop.CardDeclined, shop.CardDeclined("no"), ApplicationError("no", non_retryable=True)]
)
def test_an_error_that_is_not_worth_a_retry_ends_after_one_attempt(
    workflow_environment: WorkflowEnvironment, error: Any
):
    env = workflow_environment
    env.stub(shop.charge, raises=error)
    with pytest.raises(WorkflowFailed):
        env.run(shop.pay, "42", 999)
    assert len(env.calls(shop.charge)) == 1


def test_a_side_effect_gets_the_activity_s_arguments(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, side_effect=lambda order_id, cents: f"{order_id}: {cents / 100}")
    assert env.run(shop.pay, "42", 999) == "42: 9.99"


def test_a_side_effect_may_be_async(workflow_environment: WorkflowEnvironment):
    async def effect(order_id: str, cents: int) -> str:
        return f"{order_id} awaited {cents}"

    workflow_environment.stub(shop.charge, side_effect=effect)
    assert workflow_environment.run(shop.pay, "42", 999) == "42 awaited 999"


def test_an_async_activity_may_be_stubbed_by_a_plain_function(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.pack, side_effect=lambda order_id, weight=Decimal(2): shop.Parcel(f"stubbed {order_id}", weight))
    handle = env.start(shop.fulfil, "42", 999)
    handle.signal("address", "here")
    assert handle.result() == "sent stubbed 42 to here"


def test_a_list_of_outcomes_is_used_up_one_attempt_at_a_time(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, side_effect=[shop.GatewayDown, shop.GatewayDown("again"), "third time lucky"])
    assert env.run(shop.pay, "42", 999) == "third time lucky"
    assert len(env.calls(shop.charge)) == 3


def test_a_list_that_is_used_up_ends_the_test_and_names_the_activity(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, side_effect=["once"])
    env.run(shop.pay, "1", 1)
    with pytest.raises(EnvironmentStuck, match=r"kit\.charge"):
        env.run(shop.pay, "2", 1)


def test_an_assertion_in_a_side_effect_ends_the_test_instead_of_being_retried(
    workflow_environment: WorkflowEnvironment,
):
    env = workflow_environment

    def effect(order_id: str, cents: int) -> str:
        assert cents == 1000, f"{cents} cents"
        return "paid"

    env.stub(shop.charge, side_effect=effect)
    with pytest.raises(AssertionError, match="999 cents"):
        env.run(shop.pay, "42", 999)
    assert len(env.calls(shop.charge)) == 1


def test_an_assertion_in_an_async_side_effect_ends_the_test_too(workflow_environment: WorkflowEnvironment):
    async def effect(order_id: str, cents: int) -> str:
        raise AssertionError("not today")

    workflow_environment.stub(shop.charge, side_effect=effect)
    with pytest.raises(AssertionError, match="not today"):
        workflow_environment.run(shop.pay, "42", 999)


def test_an_activity_is_stubbed_by_name_without_being_defined(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub("kit.elsewhere", side_effect=lambda value: value + 1)
    assert env.run(shop.by_name, 41) == 42
    assert [call.args for call in env.calls("kit.elsewhere")] == [(41,)]


def test_an_activity_with_options_is_stubbed_as_the_activity(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge.with_options(queue="other"), returns="stubbed")
    assert env.run(shop.pay, "42", 1) == "stubbed"


def test_the_last_stub_of_an_activity_counts(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, returns="first")
    env.stub(shop.charge, returns="second")
    assert env.run(shop.pay, "42", 1) == "second"


def test_none_is_a_result_like_any_other(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub("kit.elsewhere", side_effect=[0])
    assert env.run(shop.by_name, 1) == 0
    env.stub("kit.elsewhere", returns=None)
    with pytest.raises(InvalidArgument, match="returns"):
        env.stub(shop.charge, returns=None)  # type: ignore[call-overload]


def test_an_attempt_that_takes_long_ends_when_its_time_has_passed(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    before = env.now
    env.stub(shop.charge, returns="paid", takes=timedelta(minutes=4))
    assert env.run(shop.pay, "42", 1) == "paid"
    assert env.now - before == timedelta(minutes=4)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "stub"),
        ({"returns": "a", "raises": ValueError}, "stub"),
        ({"returns": "a", "side_effect": ["b"]}, "stub"),
        ({"raises": "a text"}, "raises"),
        ({"raises": KeyboardInterrupt}, "raises"),
        ({"raises": None}, "raises"),
        ({"side_effect": 5}, "side_effect"),
        ({"side_effect": "abc"}, "side_effect"),
        ({"returns": 5}, "returns"),
        ({"returns": object()}, "returns"),
        ({"returns": "a", "takes": -1}, "takes"),
        ({"returns": "a", "takes": "long"}, "takes"),
    ],
)
def test_wrong_arguments_of_a_stub_are_refused_by_name(
    workflow_environment: WorkflowEnvironment, arguments: dict[str, Any], named: str
):
    with pytest.raises(InvalidArgument, match=f"^{named}"):
        workflow_environment.stub(shop.charge, **arguments)
    assert workflow_environment.run(shop.pay, "42", 1) == "charged 1 for 42"


@pytest.mark.parametrize("wrong", [None, 5, shop.fulfil, lambda: None, "", " charge", "a\nb"])
def test_something_that_is_no_activity_is_refused(workflow_environment: WorkflowEnvironment, wrong: Any):
    with pytest.raises(InvalidArgument, match="activity"):
        workflow_environment.stub(wrong, returns=None)
    with pytest.raises(InvalidArgument, match="activity"):
        workflow_environment.calls(wrong or "")


def test_a_result_of_another_type_is_refused_where_it_is_written(workflow_environment: WorkflowEnvironment):
    with pytest.raises(PayloadError, match="returns"):
        workflow_environment.stub(shop.pack, returns="no parcel")  # type: ignore[call-overload]


def test_calls_are_recorded_with_typed_arguments_and_the_facts_of_the_attempt(
    workflow_environment: WorkflowEnvironment,
):
    env = workflow_environment
    handle = env.start(shop.fulfil, "42", 999, id="order-42")
    handle.signal("address", "here")
    (charged,), (packed,), (sent,) = (env.calls(item) for item in (shop.charge, shop.pack, shop.send))
    assert (charged.activity, charged.args, charged.kwargs) == ("kit.charge", ("42", 999), {})
    assert (charged.workflow_id, charged.run_id, charged.queue) == ("order-42", handle.run_id, "payments")
    assert charged.idempotency_key == f"{handle.run_id}/{charged.number}"
    assert packed.args == ("42",)
    assert sent.args == (shop.Parcel("42", Decimal(1)),)
    assert env.calls() == [charged, packed, sent]


def test_calls_of_an_activity_that_was_not_called_are_none_and_of_an_unknown_name_an_error(
    workflow_environment: WorkflowEnvironment,
):
    assert workflow_environment.calls(shop.charge) == []
    with pytest.raises(InvalidArgument, match=r"kit\.chrage"):
        workflow_environment.calls("kit.chrage")


def test_a_mock_is_a_side_effect_like_any_function(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    mock, awaited = Mock(return_value="mocked"), AsyncMock(return_value="awaited")
    env.stub(shop.charge, side_effect=mock)
    assert env.run(shop.pay, "42", 999) == "mocked"
    mock.assert_called_once_with("42", 999)
    env.stub(shop.charge, side_effect=awaited)
    assert env.run(shop.pay, "42", 999) == "awaited"


def test_a_time_out_may_be_raised_without_letting_time_pass(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, side_effect=[ActivityTimeout("too slow", timeout_type="start_to_close"), "paid"])
    assert env.run(shop.pay_or_not, "42") == "paid"
    env.stub(shop.charge, raises=ActivityTimeout("too slow", timeout_type="start_to_close"))
    assert env.run(shop.pay_or_not, "43") == "ActivityTimeout after 10"
