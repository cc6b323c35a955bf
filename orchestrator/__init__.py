"""Durable workflows on the Celery you already run.

What is public is named here, and loaded when it is first used: each ``celery`` command imports this package.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator import installation as _installation
from orchestrator import version as _version

if TYPE_CHECKING:
    from orchestrator import activity, errors, testing, workflow
    from orchestrator.app import Orchestrator
    from orchestrator.client import (
        ActivityDescription,
        HistoryEvent,
        HistoryPage,
        Page,
        SignalReceipt,
        TimerDescription,
        WaitDescription,
        WorkflowDescription,
        WorkflowHandle,
        WorkflowSummary,
    )
    from orchestrator.engine.observers import ActivityNotice, Observer, RunNotice
    from orchestrator.errors import (
        ActivityError,
        ActivityTimeout,
        ApplicationError,
        Cancelled,
        ConfigurationError,
        InvalidArgument,
        OrchestratorError,
        PayloadError,
        QueryError,
        SignalConflict,
        SignalError,
        Unavailable,
        UndeclaredSignal,
        WorkerLost,
        WorkflowAlreadyStarted,
        WorkflowBlocked,
        WorkflowCanceled,
        WorkflowClosed,
        WorkflowError,
        WorkflowFailed,
        WorkflowNotFound,
        WorkflowTerminated,
        WorkflowTimedOut,
    )
    from orchestrator.model.options import IdReusePolicy, RetryPolicy

_HOMES = {
    "orchestrator": ("activity", "errors", "testing", "workflow"),
    "orchestrator.app": ("Orchestrator",),
    "orchestrator.client": (
        "ActivityDescription",
        "HistoryEvent",
        "HistoryPage",
        "Page",
        "SignalReceipt",
        "TimerDescription",
        "WaitDescription",
        "WorkflowDescription",
        "WorkflowHandle",
        "WorkflowSummary",
    ),
    "orchestrator.engine.observers": ("ActivityNotice", "Observer", "RunNotice"),
    "orchestrator.errors": (
        "ActivityError",
        "ActivityTimeout",
        "ApplicationError",
        "Cancelled",
        "ConfigurationError",
        "InvalidArgument",
        "OrchestratorError",
        "PayloadError",
        "QueryError",
        "SignalConflict",
        "SignalError",
        "Unavailable",
        "UndeclaredSignal",
        "WorkerLost",
        "WorkflowAlreadyStarted",
        "WorkflowBlocked",
        "WorkflowCanceled",
        "WorkflowClosed",
        "WorkflowError",
        "WorkflowFailed",
        "WorkflowNotFound",
        "WorkflowTerminated",
        "WorkflowTimedOut",
    ),
    "orchestrator.model.options": ("IdReusePolicy", "RetryPolicy"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if home == __name__:
        return importlib.import_module(f"{home}.{name}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])


__version__ = _version.VERSION

_installation.check(Path(__file__).parent)

__all__ = [
    "ActivityDescription",
    "ActivityError",
    "ActivityNotice",
    "ActivityTimeout",
    "ApplicationError",
    "Cancelled",
    "ConfigurationError",
    "HistoryEvent",
    "HistoryPage",
    "IdReusePolicy",
    "InvalidArgument",
    "Observer",
    "Orchestrator",
    "OrchestratorError",
    "Page",
    "PayloadError",
    "QueryError",
    "RetryPolicy",
    "RunNotice",
    "SignalConflict",
    "SignalError",
    "SignalReceipt",
    "TimerDescription",
    "Unavailable",
    "UndeclaredSignal",
    "WaitDescription",
    "WorkerLost",
    "WorkflowAlreadyStarted",
    "WorkflowBlocked",
    "WorkflowCanceled",
    "WorkflowClosed",
    "WorkflowDescription",
    "WorkflowError",
    "WorkflowFailed",
    "WorkflowHandle",
    "WorkflowNotFound",
    "WorkflowSummary",
    "WorkflowTerminated",
    "WorkflowTimedOut",
    "__version__",
    "activity",
    "errors",
    "testing",
    "workflow",
]
