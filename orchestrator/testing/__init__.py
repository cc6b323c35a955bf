"""Testing workflows and activities: in memory, without a broker, with time that skips.

    from orchestrator.testing import ActivityEnvironment, WorkflowEnvironment

In pytest the fixtures ``workflow_environment`` and ``activity_environment`` are there by themselves.
"""

from orchestrator.testing.activities import INFO, ActivityEnvironment
from orchestrator.testing.calls import ActivityCall
from orchestrator.testing.environment import WorkflowEnvironment

__all__ = ["INFO", "ActivityCall", "ActivityEnvironment", "WorkflowEnvironment"]
