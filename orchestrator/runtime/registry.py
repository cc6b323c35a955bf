"""The workflow types that this process knows, by name.

A name means one workflow type: histories remember names, so two definitions under one name from different
places are an error that names both. Importing the same place again replaces the earlier definition.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from orchestrator.errors import DuplicateDefinition, InvalidArgument, UnknownWorkflowType
from orchestrator.runtime.definition import WorkflowDefinition


class WorkflowRegistry:
    """Workflow types by name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, WorkflowDefinition] = {}
        self._names: dict[Any, str] = {}

    def register(self, definition: WorkflowDefinition) -> None:
        """Adds a definition, replacing one from the same place.

        Raises:
            DuplicateDefinition: Another place defines the name; both are named.
        """
        with self._lock:
            known = self._by_name.get(definition.name)
            if known is not None and not known.is_same_place(definition):
                raise DuplicateDefinition(
                    f"Two workflows are named {definition.name!r}: {known.place} and {definition.place}. A name is how "
                    "history finds its code again; give one of them another with @workflow.defn(name=...)."
                )
            self._by_name[definition.name] = definition
            self._names[definition.run] = self._names[definition.target] = definition.name

    def get(self, name: str) -> WorkflowDefinition:
        """Returns the workflow type of that name.

        Raises:
            UnknownWorkflowType: No code of this process defines it.
        """
        found = self._by_name.get(name)
        if found is not None:
            return found
        near = difflib.get_close_matches(name, self._by_name, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UnknownWorkflowType(
            f"No code of this process defines the workflow type {name!r}.{hint} Import its module in this process, for "
            "workers through the app's include or autodiscover_tasks."
        )

    def resolve(self, target: Any) -> WorkflowDefinition:
        """Returns the workflow type of a decorated function, a workflow class, its ``run`` method, or a name.

        Raises:
            UnknownWorkflowType: There is none of that name.
            InvalidArgument: It is nothing that ``@workflow.defn`` decorated.
        """
        if isinstance(target, str):
            return self.get(target)
        plain = getattr(target, "__func__", target)
        try:
            name = self._names.get(plain)
        except TypeError:
            name = None
        if name is None:
            shown = getattr(plain, "__qualname__", type(plain).__name__)
            raise InvalidArgument(
                "run",
                f"{shown} is no workflow; decorate the function, or the class of the run method, with @workflow.defn",
            )
        return self.get(name)

    def names(self) -> list[str]:
        """Returns the known names, sorted."""
        with self._lock:
            return sorted(self._by_name)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forgets, at its end, what was registered inside; for tests that define workflows of their own."""
        with self._lock:
            before = dict(self._by_name), dict(self._names)
        try:
            yield
        finally:
            with self._lock:
                self._by_name, self._names = before


_default = WorkflowRegistry()


def default_registry() -> WorkflowRegistry:
    """Returns the registry of ``@workflow.defn``."""
    return _default
