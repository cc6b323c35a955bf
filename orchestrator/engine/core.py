"""What every part of the engine works with, bound once by the composition root."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orchestrator.config import Settings
from orchestrator.engine.observers import Observer
from orchestrator.engine.progress import ProgressNotes
from orchestrator.model.options import DEFAULT_ACTIVITY_OPTIONS, ActivityOptions
from orchestrator.model.payloads import PayloadConverter
from orchestrator.runtime.registry import WorkflowRegistry
from orchestrator.store.database import Database
from orchestrator.transport.messages import Transport
from orchestrator.types import IdFactory, new_id

PYTHON_VERSION = ".".join(platform.python_version_tuple()[:2])


@dataclass(frozen=True, kw_only=True)
class Engine:
    """The parts that the engine's functions are given.

    ``sleep`` and ``monotonic`` take and give seconds; they are injected so that the simulation and the
    test kit own time.
    """

    db: Database
    transport: Transport
    registry: WorkflowRegistry
    converter: PayloadConverter
    settings: Settings
    activity_defaults: ActivityOptions = DEFAULT_ACTIVITY_OPTIONS
    observers: Sequence[Observer] = ()
    ids: IdFactory = new_id
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    progress: ProgressNotes = field(default_factory=ProgressNotes)
