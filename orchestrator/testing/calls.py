"""What a test sees of the activities that were called."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ActivityCall:
    """One attempt of an activity, as its function or its stub was called.

    Attributes:
        activity: Name of the activity.
        args: Positional arguments, as the activity got them: stored, read back, and of the annotated types.
        kwargs: Keyword arguments.
        attempt: Which attempt it was, counted from 1.
        number: Number of the activity in its run.
        workflow_id: Which workflow called.
        run_id: Which of its runs.
        idempotency_key: The same for every attempt of this activity in this run.
        queue: The queue of its message.
        at: When the attempt began, on the environment's clock, in UTC.
    """

    activity: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    attempt: int = 1
    number: int = 1
    workflow_id: str = ""
    run_id: str = ""
    idempotency_key: str = ""
    queue: str = ""
    at: datetime
