"""Who wants to know: hooks called after commit, isolated from the work they watch.

An observer that raises is logged and never fails the operation it was told about.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.errors import InvalidArgument
from orchestrator.model.names import check_instance
from orchestrator.model.records import RunStatus
from orchestrator.types import Micros

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunNotice:
    """What happened to a run. ``at`` is the decision's time."""

    namespace: str
    workflow_id: str
    run_id: str
    workflow_type: str
    status: RunStatus
    at: Micros
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ActivityNotice:
    """What happened to an activity's attempt. ``final`` tells that no attempt follows."""

    workflow_id: str
    run_id: str
    activity: str
    number: int
    attempt: int
    error_type: str
    message: str
    final: bool


class Observer:
    """Base of observers: every hook is a documented no-op, called after the commit it tells of."""

    def run_started(self, notice: RunNotice) -> None:
        """The run's first decision was committed: PENDING became RUNNING. Once per run."""

    def run_closed(self, notice: RunNotice) -> None:
        """The run ended, in any way. Once per run."""

    def run_blocked(self, notice: RunNotice) -> None:
        """A decision failed on the run's code; ``reason`` tells why. Once per try."""

    def activity_failed(self, notice: ActivityNotice) -> None:
        """An attempt failed, timed out or was lost. Once per attempt."""


def check_observers(observers: object) -> tuple[Observer, ...]:
    """Returns the observers.

    Raises:
        InvalidArgument: It is no list of objects of subclasses of :class:`Observer`.
    """
    if not isinstance(observers, Sequence) or isinstance(observers, (str, bytes)):
        raise InvalidArgument("observers", f"give a list of observers, not {type(observers).__name__}")
    what = "objects of subclasses of orchestrator.Observer"
    return tuple(check_instance(observer, "observers", Observer, what) for observer in observers)


def notify(observers: Sequence[Observer], hook: str, notice: RunNotice | ActivityNotice) -> None:
    """Calls one hook of every observer; what they raise is logged."""
    for observer in observers:
        try:
            getattr(observer, hook)(notice)
        except Exception:
            logger.exception("Observer %r failed in %s; the operation itself succeeded.", observer, hook)
