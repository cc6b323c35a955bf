"""The composition root: binds a Celery app, the database, the transport and the definitions into one object.

    app = Celery("shop", broker="amqp://localhost", include=["shop.orders"])
    app.conf.orchestrator_database_url = "postgresql://localhost/shop"
    durable = Orchestrator(app)

Making one reads nothing and connects to nothing, so the order of imports and settings does not matter. The
settings are read, and checked, at the first use.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from celery import Celery

from orchestrator.activity.calls import OptionArguments, make_options
from orchestrator.client.on_commit import CommitAwareClient
from orchestrator.config import PREFIX, Settings, read_settings
from orchestrator.engine.core import Engine
from orchestrator.engine.observers import Observer, check_observers
from orchestrator.errors import ConfigurationError, InvalidArgument
from orchestrator.model.names import check_instance
from orchestrator.model.options import DEFAULT_ACTIVITY_OPTIONS, ActivityOptions
from orchestrator.model.payloads import PayloadConverter
from orchestrator.runtime.registry import default_registry
from orchestrator.store import migrate
from orchestrator.store.database import Database
from orchestrator.transport.celery import CeleryTransport
from orchestrator.worker import binding, bootsteps, tasks
from orchestrator.worker.queues import BEAT_ENTRY, beat_entry, housekeeping_queue

_DEFAULT_INTERVAL = 1.0


class Orchestrator(CommitAwareClient):
    """Adds durable workflows to a Celery app, and is the client that starts and reaches them.

    Args:
        app: The team's Celery app.
        observers: Told what happens to runs, after each commit.

    Raises:
        InvalidArgument: It is no Celery app, or the observers are none.
        ConfigurationError: The app has an Orchestrator already.
    """

    def __init__(self, app: Celery, *, observers: Sequence[Observer] = ()) -> None:
        self.app = check_instance(app, "app", Celery, "your Celery app")
        self._observers = check_observers(observers)
        self._lock = threading.RLock()
        self._engine_made: Engine | None = None
        super().__init__(self.engine)
        binding.bind(app, self.engine)
        _by_app[app] = self
        tasks.register(app)
        bootsteps.install(app)
        app.autodiscover_tasks(related_name="workflows")
        if getattr(app, "finalized", False):
            self._add_beat_entry()
        else:
            app.on_after_finalize.connect(self._add_beat_entry, weak=False)

    @classmethod
    def of(cls, app: Celery) -> Orchestrator | None:
        """Returns an app's Orchestrator, or None.

        Raises:
            InvalidArgument: It is no Celery app.
        """
        return _by_app.get(check_instance(app, "app", Celery, "your Celery app"))

    @property
    def settings(self) -> Settings:
        """The settings, validated.

        Raises:
            ConfigurationError: One is wrong; it is named.
        """
        return self.engine().settings

    def engine(self) -> Engine:
        """Returns the engine, built at the first call.

        Raises:
            ConfigurationError: A setting is wrong, or one of Celery's makes workflows impossible.
        """
        made = self._engine_made
        if made is None:
            with self._lock:
                made = self._engine_made = self._engine_made or self._build()
        return made

    def close(self) -> None:
        """Closes what was opened: connections to the database and to the broker."""
        with self._lock:
            made, self._engine_made = self._engine_made, None
        if made is not None:
            made.db.dispose()
            if isinstance(made.transport, CeleryTransport):
                made.transport.close()

    def _build(self) -> Engine:
        app = self.app
        if app.conf.task_always_eager:
            raise ConfigurationError(
                "task_always_eager is set: tasks would run inside the call that sends them, which is no workflow. "
                "Unset it, and test workflows with orchestrator.testing.WorkflowEnvironment."
            )
        broker = str(app.conf.broker_write_url or app.conf.broker_url or "")
        settings = read_settings(our_settings(app), broker_url=broker)
        defaults = activity_defaults(settings.activity_defaults)
        database = Database.open(
            settings.database_url,
            pool_size=settings.pool_size,
            decision_timeout_us=settings.micros("decision_timeout"),
        )
        if broker.startswith("memory:") and database.dialect == "sqlite":
            # Embedded: one process, one file, nobody to run a migration first.
            migrate.create(database)
        return Engine(
            db=database,
            transport=CeleryTransport(app, publish_timeout=settings.publish_timeout),
            registry=default_registry(),
            converter=PayloadConverter(limit=settings.payload_limit),
            settings=settings,
            activity_defaults=defaults,
            observers=self._observers,
        )

    def _add_beat_entry(self, **_: Any) -> None:
        interval = our_settings(self.app).get(f"{PREFIX}sweep_interval", _DEFAULT_INTERVAL)
        try:
            seconds = interval.total_seconds() if isinstance(interval, timedelta) else float(interval)
        except (TypeError, ValueError, OverflowError):
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            # Told by name at the first use; here it would break whatever finalizes the app first.
            seconds = _DEFAULT_INTERVAL
        self.app.amqp.queues.add(housekeeping_queue(self.app))
        schedule = dict(self.app.conf.beat_schedule or {})
        schedule.setdefault(BEAT_ENTRY, beat_entry(self.app, seconds))
        self.app.conf.beat_schedule = schedule


_by_app: weakref.WeakKeyDictionary[Celery, Orchestrator] = weakref.WeakKeyDictionary()


def our_settings(app: Celery) -> dict[str, Any]:
    """Returns the settings of ours in an app's configuration, by their plain lower-case keys.

    Celery's configuration may have a namespace (``CELERY_ORCHESTRATOR_DATABASE_URL`` with ``namespace="CELERY"``).
    """
    conf: Any = app.conf
    keys = list(conf)  # first, as that loads the configuration, and with it its namespace
    namespace = str(getattr(conf, "prefix", None) or "").lower()
    found: dict[str, Any] = {}
    for key in keys:
        # A key in the namespace, or one that was set on the configuration itself.
        inside = bool(namespace) and str(key).lower().startswith(namespace)
        plain = str(key).lower().removeprefix(namespace) if inside else str(key)
        if plain.startswith(PREFIX):
            found[plain] = conf[key]
    return found


def activity_defaults(given: Any) -> ActivityOptions:
    """Returns what holds for activities that say nothing: the setting's options over the product's.

    Raises:
        ConfigurationError: It is no dict of activity options.
    """
    if given is None:
        return DEFAULT_ACTIVITY_OPTIONS
    if isinstance(given, Mapping):
        try:
            given = make_options(cast("OptionArguments", dict(given)))
        except (TypeError, InvalidArgument) as error:
            raise ConfigurationError(f"{PREFIX}activity_defaults: {error}") from None
    if not isinstance(given, ActivityOptions):
        raise ConfigurationError(
            f"{PREFIX}activity_defaults: give a dict of activity options, not {type(given).__name__}"
        )
    return given.merged(DEFAULT_ACTIVITY_OPTIONS)
