"""The logger of activities: Celery's task logger, with the ids of the running attempt in ``extra``."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from celery.utils.log import get_task_logger

from orchestrator.activity.context import maybe_running


class _ActivityLogger(logging.LoggerAdapter[logging.Logger]):
    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        attempt = maybe_running()
        if attempt is not None:
            info = attempt.info
            ids = {
                "workflow_id": info.workflow_id,
                "run_id": info.run_id,
                "activity": info.activity,
                "activity_number": info.number,
                "attempt": info.attempt,
            }
            kwargs["extra"] = {**ids, **(kwargs.get("extra") or {})}
        return msg, kwargs


logger = _ActivityLogger(get_task_logger("orchestrator.activity"), {})
"""Logs as Celery's tasks do; workflow_id, run_id, activity, activity_number and attempt are in ``extra``."""
