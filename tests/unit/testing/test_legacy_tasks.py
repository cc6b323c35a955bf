"""Plain Celery tasks in workflows under test."""

import pytest
from celery import Celery, current_app

from orchestrator.errors import ConfigurationError
from orchestrator.testing import WorkflowEnvironment
from tests.unit.testing import shop


def test_a_plain_task_runs_with_its_own_function(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    assert env.run(shop.old_task, 41) == 42
    assert [call.args for call in env.calls(shop.legacy)] == [(41,)]


def test_a_plain_task_is_stubbed_like_an_activity(workflow_environment: WorkflowEnvironment):
    env = workflow_environment
    env.stub(shop.legacy, returns=7)
    assert env.run(shop.old_task, 41) == 7


def test_a_plain_task_that_retries_itself_gets_to_its_end(workflow_environment: WorkflowEnvironment):
    assert workflow_environment.run(shop.stubborn_task, 2) == 2


def test_the_settings_of_the_given_app_hold_but_not_its_database_and_broker():
    app = Celery("shop", broker="amqp://nowhere.invalid", set_as_current=False)
    app.conf.orchestrator_database_url = "postgresql://nowhere.invalid/shop"
    app.conf.orchestrator_namespace = "shop"
    app.conf.orchestrator_activity_defaults = {"start_to_close_timeout": 7}
    with WorkflowEnvironment(app) as env:
        handle = env.start(shop.pay, "42", 1)
        assert handle.result() == "charged 1 for 42"
        assert handle.describe().namespace == "shop"
    assert current_app is not app


def test_a_wrong_setting_of_the_app_is_named():
    app = Celery("shop", set_as_current=False)
    app.conf.orchestrator_namespcae = "shop"
    with pytest.raises(ConfigurationError, match="orchestrator_namespcae"):
        WorkflowEnvironment(app)
