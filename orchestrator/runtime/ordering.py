"""Two places in asyncio whose order depends on memory addresses, made to depend on the program instead.

``asyncio.as_completed`` makes a set of the coroutines it is given, and starts them in the order of that set;
the future of ``asyncio.gather`` hashes by its address. Neither can be reached through the event loop, so they
are changed where they are, for code inside a workflow only: elsewhere both do exactly what they did.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Iterable
from typing import Any

from orchestrator.errors import InsideWorkflow
from orchestrator.runtime.loop import WorkflowLoop

_original: Any = None


def install() -> None:
    """Makes both changes; once for the process."""
    global _original  # noqa: PLW0603 - a change to the whole process is remembered in one place
    if _original is not None:
        return
    function: Any = asyncio.as_completed
    _original = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    _original.__kwdefaults__ = function.__kwdefaults__
    # The code and not the name is replaced, so that `from asyncio import as_completed` is meant too, whenever it ran.
    function.__code__ = _delegate.__code__
    gathering: Any = asyncio.tasks._GatheringFuture  # type: ignore[attr-defined]
    gathering.__hash__ = _hash


def _delegate(fs, *, timeout=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    # Runs as the code of asyncio.as_completed, with the global names of asyncio.
    from orchestrator.runtime.ordering import as_completed

    return as_completed(fs, timeout=timeout)


def as_completed(fs: Iterable[Any], *, timeout: float | None = None) -> Any:
    """As ``asyncio.as_completed``; in a workflow, coroutines start in the order of the arguments.

    Raises:
        InsideWorkflow: Workflow code gives a set with coroutines, which has no order.
    """
    loop = asyncio._get_running_loop()
    if type(loop) is WorkflowLoop and not asyncio.isfuture(fs) and not asyncio.iscoroutine(fs):
        fs = _started(fs, loop)
    return _original(fs, timeout=timeout)


def _started(given: Iterable[Any], loop: WorkflowLoop) -> list[asyncio.Future[Any]]:
    items = list(given)
    if isinstance(given, (set, frozenset)) and any(asyncio.iscoroutine(item) for item in items):
        for item in items:
            if asyncio.iscoroutine(item):
                item.close()
        raise InsideWorkflow(
            "as_completed() was given a set of coroutines, which has another order in each process; give a list."
        )
    unique = {id(item): item for item in items}
    return [asyncio.ensure_future(item, loop=loop) for item in unique.values()]


def _hash(future: Any) -> int:
    order: int | None = getattr(future, "_orchestrator_order", None)
    if order is None:
        loop = future.get_loop()
        # Numbered when it is first put into a set, which the program decides.
        order = loop.next_order() if type(loop) is WorkflowLoop else object.__hash__(future)
        future._orchestrator_order = order
    return order
