"""The fixtures under test, as pytest finds them once the library is installed."""

from orchestrator.testing.plugin import activity_environment, workflow_app, workflow_environment

__all__ = ["activity_environment", "workflow_app", "workflow_environment"]
