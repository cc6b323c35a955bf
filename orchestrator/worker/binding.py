"""Which engine belongs to which Celery app: put there by the composition root, asked for by tasks and bootsteps."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from celery import Celery

from orchestrator.engine.core import Engine
from orchestrator.errors import ConfigurationError

EngineProvider = Callable[[], Engine]
"""Builds the engine at its first call; gives the same one afterwards."""

_providers: weakref.WeakKeyDictionary[Celery, EngineProvider] = weakref.WeakKeyDictionary()


def bind(app: Celery, provider: EngineProvider) -> None:
    """Binds an app to its engine.

    Raises:
        ConfigurationError: It has one already.
    """
    if app in _providers:
        raise ConfigurationError(f"{app!r} has an Orchestrator already; make one per app and share it.")
    _providers[app] = provider


def engine_of(app: Celery) -> Engine:
    """Returns the app's engine.

    Raises:
        ConfigurationError: The app has none, or its settings are wrong.
    """
    provider = _providers.get(app)
    if provider is None:
        raise ConfigurationError(
            f"{app!r} has no Orchestrator; add one line to its module: durable = Orchestrator(app)"
        )
    return provider()


def is_bound(app: Celery) -> bool:
    """Tells whether the app has an engine."""
    return app in _providers
