"""The settings: keys in the team's Celery configuration, checked with pydantic at first use.

Every key is lower-case and starts with ``orchestrator_``; Celery's configuration namespace works too
(``CELERY_ORCHESTRATOR_DATABASE_URL`` with ``namespace="CELERY"``). A wrong key or value is an error
that names it. docs/settings.md has a heading for each.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.errors import ConfigurationError
from orchestrator.types import Micros, to_micros

PREFIX = "orchestrator_"
DEFAULT_SQLITE_URL = "sqlite:///orchestrator.db"
EMBEDDED_RESEND_AFTER = timedelta(seconds=1)
"""Default of ``resend_after`` with ``memory://``, where messages do not leave their process."""


class Settings(BaseModel):
    """All settings, validated. Durations are timedelta, or a number of seconds.

    Attributes are named like the Celery keys without their prefix.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    database_url: str
    namespace: str = Field(default="default", min_length=1, max_length=255)
    build_id: str = Field(default="", max_length=255)
    sweep_interval: timedelta = Field(default=timedelta(seconds=1), gt=timedelta(milliseconds=10))
    timer_horizon: timedelta = Field(default=timedelta(seconds=5), ge=timedelta(0))
    inline: Literal["off"] = "off"
    activity_defaults: Any = None
    """An ActivityOptions-like dict or object, merged under the product's defaults."""
    decision_timeout: timedelta = Field(default=timedelta(seconds=2), gt=timedelta(0))
    payload_limit: int = Field(default=2 * 1024 * 1024, ge=1024)
    inbox_limit: int = Field(default=10_000, ge=1)
    history_warn: int = Field(default=10_000, ge=1)
    history_limit: int = Field(default=50_000, ge=1)
    lost_limit: int = Field(default=3, ge=1)
    """Attempts lost with their process, in a row, before the activity ends in WorkerLost."""
    liveness_interval: timedelta = Field(default=timedelta(seconds=5), gt=timedelta(0))
    liveness_timeout: timedelta = Field(default=timedelta(seconds=30), gt=timedelta(0))
    publish_timeout: timedelta = Field(default=timedelta(seconds=2), gt=timedelta(0))
    resend_after: timedelta = Field(default=timedelta(seconds=30), gt=timedelta(0))
    resend_cap: timedelta = Field(default=timedelta(minutes=10), gt=timedelta(0))
    pool_size: int = Field(default=5, ge=1)

    def micros(self, name: str) -> Micros:
        """Returns a duration setting in microseconds."""
        value: timedelta = getattr(self, name)
        return to_micros(value)


def read_settings(conf: Mapping[str, Any], *, broker_url: str | None) -> Settings:
    """Reads the settings from a Celery configuration.

    Args:
        conf: The configuration; keys without our prefix are ignored.
        broker_url: The app's broker. SQLite is the default database only with ``memory://``.

    Raises:
        ConfigurationError: A key is unknown, a value is wrong, or the database URL is missing.
    """
    values = {key[len(PREFIX) :]: value for key, value in conf.items() if key.startswith(PREFIX)}
    unknown = sorted(set(values) - set(Settings.model_fields))
    if unknown:
        raise ConfigurationError(_unknown_key(unknown[0]))
    embedded = (broker_url or "").startswith("memory:")
    if embedded:
        # What another process starts or signals is sent into that process's own memory: only the sweep brings it here.
        values.setdefault("resend_after", EMBEDDED_RESEND_AFTER)
    if not values.get("database_url"):
        if not embedded:
            raise ConfigurationError(
                "orchestrator_database_url is not set. Workflows need a database; add one line to your Celery "
                'configuration, for example: app.conf.orchestrator_database_url = "postgresql://localhost/shop"'
            )
        values["database_url"] = DEFAULT_SQLITE_URL
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        key = PREFIX + ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"{key}: {first['msg']} (it is {first.get('input')!r})") from None


def _unknown_key(key: str) -> str:
    near = difflib.get_close_matches(key, Settings.model_fields, n=1)
    hint = f"; did you mean {PREFIX}{near[0]}?" if near else "; docs/settings.md lists the settings."
    return f"{PREFIX}{key} is not a setting{hint}"
