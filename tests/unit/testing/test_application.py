"""Code of an application that has a client of its own, under test."""

from celery import Celery
from sqlalchemy import create_engine

from orchestrator.app import Orchestrator
from orchestrator.testing import WorkflowEnvironment
from tests.unit.testing import shop

celery = Celery("shop", broker="amqp://nowhere.invalid", set_as_current=False)
durable = Orchestrator(celery)


def place_order(order_id: str) -> str:
    """Stands for a view of the application."""
    return durable.start(shop.pay, order_id, 999, id=f"order-{order_id}").id


def test_an_application_s_own_client_reaches_the_environment(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.charge, returns="paid")
    with env.stand_in_for(durable):
        assert place_order("42") == "order-42"
        assert durable.get_handle("order-42").result() == "paid"
    assert env.get_handle("order-42").result() == "paid"


def test_the_application_s_client_is_its_own_again_afterwards(workflow_environment: WorkflowEnvironment):
    provider = durable._engine_provider
    with workflow_environment.stand_in_for(durable):
        assert durable._engine_provider is not provider
    assert durable._engine_provider is provider


def test_a_start_and_a_signal_in_the_application_s_own_transaction_take_effect(
    workflow_environment: WorkflowEnvironment,
):
    with workflow_environment.stand_in_for(durable), create_engine("sqlite://").begin() as connection:
        handle = durable.start(shop.fulfil, "42", 999, id="order-42", connection=connection)
        handle.signal("address", "here", connection=connection)
        durable.flush()
        assert handle.result() == "sent 42 to here"
