"""What workflow code waits for besides tasks: a condition over its own state.

Predicates are evaluated when the loop is idle, in the order their waits began, and again after whatever they
set in motion, until nothing changes. They only read.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.errors import InvalidArgument
from orchestrator.runtime.ending import PASSING

if TYPE_CHECKING:
    from orchestrator.runtime.execution import Execution
    from orchestrator.types import Micros

READER = "A wait_condition predicate"


@dataclass(eq=False)
class _Condition:
    predicate: Callable[[], Any]
    context: contextvars.Context
    future: asyncio.Future[None]


class Conditions:
    """The open ``wait_condition`` calls of a run."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._open: list[_Condition] = []

    async def wait(self, predicate: Callable[[], Any], timeout_us: Micros | None) -> None:
        """Returns once the predicate holds; at once when it does already.

        Raises:
            TimeoutError: The time passed first.
        """
        execution = self._execution
        execution.log.check_writable()
        context = contextvars.copy_context()
        if self._holds(predicate):
            return
        condition = _Condition(predicate, context, execution.loop.create_future())
        self._open.append(condition)
        timer = execution.timers.limit(condition.future, timeout_us, "wait_condition")
        try:
            await condition.future
        finally:
            if timer is not None:
                timer.cancel()
            if condition in self._open:
                self._open.remove(condition)

    def settle(self) -> bool:
        """Evaluates the predicates, in order; True when some wait ended, so that the loop has work again."""
        if not self._open or self._execution.loop.stopped:
            return False
        still: list[_Condition] = []
        ended: list[tuple[_Condition, BaseException | None]] = []
        for condition in self._open:
            if condition.future.done():
                continue
            try:
                if condition.context.run(self._holds, condition.predicate):
                    ended.append((condition, None))
                else:
                    still.append(condition)
            except PASSING:
                raise
            except BaseException as error:  # noqa: BLE001 - it belongs to the waiting code
                ended.append((condition, error))
        self._open = still
        for condition, problem in ended:
            if problem is None:
                condition.future.set_result(None)
            else:
                condition.future.set_exception(problem)
        return bool(ended)

    def _holds(self, predicate: Callable[[], Any]) -> bool:
        with self._execution.reading(READER):
            value = predicate()
            if inspect.isawaitable(value):
                if inspect.iscoroutine(value):
                    value.close()
                raise InvalidArgument("predicate", "give a plain function; it is called many times and can't await")
            return bool(value)
