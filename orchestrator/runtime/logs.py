"""The logger of workflow code: each line once, with the ids of its run."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from orchestrator.runtime.context import maybe_current

if TYPE_CHECKING:
    _Adapter = logging.LoggerAdapter[logging.Logger]
else:
    _Adapter = logging.LoggerAdapter


class WorkflowLogger(_Adapter):
    """Logs to ``orchestrator.workflow``; silent in replay, since the line was logged before.

    Each record carries ``workflow_id``, ``run_id`` and ``workflow_type`` as extra fields.
    """

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - the name of logging
        execution = maybe_current()
        if execution is not None and execution.loop.muted:
            return False
        return super().isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        execution = maybe_current()
        if execution is not None:
            kwargs["extra"] = {**execution.log_fields, **(kwargs.get("extra") or {})}
        return msg, kwargs


logger = WorkflowLogger(logging.getLogger("orchestrator.workflow"), {})
"""The logger of workflow code."""
