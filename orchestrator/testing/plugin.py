"""The pytest plugin: fixtures for testing workflows and activities.

It is found by itself once the library is installed. Nothing else of the library is imported before a test
asks for one of the fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from celery import Celery

    from orchestrator.testing.activities import ActivityEnvironment
    from orchestrator.testing.environment import WorkflowEnvironment


@pytest.fixture
def workflow_app() -> Celery | None:
    """The Celery app of ``workflow_environment``; override it in your conftest.py to test with your app's settings."""
    return None


@pytest.fixture
def workflow_environment(workflow_app: Celery | None) -> Iterator[WorkflowEnvironment]:
    """A fresh :class:`~orchestrator.testing.WorkflowEnvironment`, closed after the test."""
    from orchestrator.testing.environment import WorkflowEnvironment

    with WorkflowEnvironment(workflow_app) as environment:
        yield environment


@pytest.fixture
def activity_environment() -> ActivityEnvironment:
    """A fresh :class:`~orchestrator.testing.ActivityEnvironment`."""
    from orchestrator.testing.activities import ActivityEnvironment

    return ActivityEnvironment()
