"""What callers do: start workflows, signal and query them, wait for them, look at them."""

from orchestrator.client.client import WorkflowClient
from orchestrator.client.handle import WorkflowHandle
from orchestrator.client.views import (
    ActivityDescription,
    HistoryEvent,
    HistoryPage,
    Page,
    SignalReceipt,
    TimerDescription,
    WaitDescription,
    WorkflowDescription,
    WorkflowSummary,
)

__all__ = [
    "ActivityDescription",
    "HistoryEvent",
    "HistoryPage",
    "Page",
    "SignalReceipt",
    "TimerDescription",
    "WaitDescription",
    "WorkflowClient",
    "WorkflowDescription",
    "WorkflowHandle",
    "WorkflowSummary",
]
