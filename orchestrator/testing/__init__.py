"""Testing workflows and activities: in memory, without a broker, with time that skips.

    from orchestrator.testing import ActivityEnvironment, WorkflowEnvironment

In pytest the fixtures ``workflow_environment`` and ``activity_environment`` are there by themselves. pytest
imports this package in every project where the library is installed, so the rest is imported when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.testing.activities import INFO, ActivityEnvironment
    from orchestrator.testing.calls import ActivityCall
    from orchestrator.testing.environment import WorkflowEnvironment

__all__ = ["INFO", "ActivityCall", "ActivityEnvironment", "WorkflowEnvironment"]

_MODULES = {
    "INFO": "activities",
    "ActivityCall": "calls",
    "ActivityEnvironment": "activities",
    "WorkflowEnvironment": "environment",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
