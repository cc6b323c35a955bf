"""Building the engine of a test: the application's settings, everything else its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from celery import Celery

from orchestrator.app import activity_defaults, our_settings
from orchestrator.config import PREFIX, Settings, read_settings
from orchestrator.engine.core import Engine
from orchestrator.engine.observers import Observer, check_observers
from orchestrator.model.payloads import PayloadConverter
from orchestrator.runtime.registry import default_registry
from orchestrator.store.database import Database
from orchestrator.store.memory import URL
from orchestrator.transport.messages import Transport

_NEVER = timedelta(days=100 * 365)


def make_engine(
    app: Celery | None,
    database: Database,
    transport: Transport,
    *,
    observers: Sequence[Observer],
    sleep: Callable[[float], None],
    monotonic: Callable[[], float],
) -> Engine:
    """Returns an engine over a test's own parts.

    Args:
        app: The application whose settings hold; None for the defaults.
        database: Its database.
        transport: Carries its messages.
        observers: Told what happens.
        sleep: Waits some seconds.
        monotonic: Seconds on a clock that only goes forward.

    Raises:
        InvalidArgument: The observers are none.
        ConfigurationError: A setting of the app is wrong.
    """
    settings = _settings(app)
    return Engine(
        db=database,
        transport=transport,
        registry=default_registry(),
        converter=PayloadConverter(limit=settings.payload_limit),
        settings=settings,
        activity_defaults=activity_defaults(settings.activity_defaults),
        observers=check_observers(observers),
        sleep=sleep,
        monotonic=monotonic,
    )


def _settings(app: Celery | None) -> Settings:
    theirs = {} if app is None else our_settings(app)
    # The database is never the application's. The one worker of a test is this process, which is never lost.
    ours = {f"{PREFIX}database_url": URL, f"{PREFIX}liveness_timeout": _NEVER}
    return read_settings({**theirs, **ours}, broker_url=None)
