"""The settings: keys in the team's Celery configuration, checked with pydantic at first use.

Every key is lower-case and starts with ``orchestrator_``; Celery's configuration namespace works too
(``CELERY_ORCHESTRATOR_DATABASE_URL`` with ``namespace="CELERY"``). A wrong key or value is an error
that names it. docs/settings.md has a heading for each.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from orchestrator.errors import ConfigurationError
from orchestrator.types import Micros, to_micros

PREFIX = "orchestrator_"
DEFAULT_SQLITE_URL = "sqlite:///orchestrator.db"
EMBEDDED_RESEND_AFTER = timedelta(seconds=1)
"""Default of ``resend_after`` with ``memory://``, where messages do not leave their process."""


_MANY = 2**31 - 1
_LONGEST = timedelta(days=100 * 365)


def _label(text: str) -> str:
    """A namespace or a build, by the rules of ids, which stand above this module."""
    if text != text.strip():
        raise PydanticCustomError("blank_edge", "it must not begin or end with a blank")
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise PydanticCustomError("control_character", "it must not hold control characters")
    if len(text.encode()) > 255:
        raise PydanticCustomError("too_long", "at most 255 bytes in UTF-8 are accepted")
    return text


Duration = Annotated[timedelta, Field(le=_LONGEST)]
"""A timedelta or a number of seconds, at most 100 years."""


class Settings(BaseModel):
    """All settings, validated. Durations are timedelta, or a number of seconds.

    Attributes are named like the Celery keys without their prefix.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    database_url: str
    namespace: Annotated[str, AfterValidator(_label)] = Field(default="default", min_length=1)
    build_id: Annotated[str, AfterValidator(_label)] = ""
    sweep_interval: Duration = Field(default=timedelta(seconds=1), gt=timedelta(milliseconds=10))
    timer_horizon: Duration = Field(default=timedelta(seconds=5), ge=timedelta(0))
    inline: Literal["off"] = "off"
    activity_defaults: Any = None
    """An ActivityOptions-like dict or object, merged under the product's defaults."""
    decision_timeout: timedelta = Field(default=timedelta(seconds=2), gt=timedelta(0), le=timedelta(hours=1))
    payload_limit: int = Field(default=2 * 1024 * 1024, ge=1024, le=2**30)
    inbox_limit: int = Field(default=10_000, ge=1, le=_MANY)
    history_warn: int = Field(default=10_000, ge=1, le=_MANY)
    history_limit: int = Field(default=50_000, ge=1, le=_MANY)
    lost_limit: int = Field(default=3, ge=1, le=_MANY)
    """Attempts lost with their process, in a row, before the activity ends in WorkerLost."""
    liveness_interval: Duration = Field(default=timedelta(seconds=5), gt=timedelta(0))
    liveness_timeout: Duration = Field(default=timedelta(seconds=30), gt=timedelta(0))
    publish_timeout: Duration = Field(default=timedelta(seconds=2), gt=timedelta(0))
    resend_after: Duration = Field(default=timedelta(seconds=30), gt=timedelta(0))
    resend_cap: Duration = Field(default=timedelta(minutes=10), gt=timedelta(0))
    pool_size: int = Field(default=5, ge=1, le=10_000)

    @model_validator(mode="before")
    @classmethod
    def _refuse_bools(cls, values: dict[str, Any]) -> dict[str, Any]:
        # No setting is a yes or no, and pydantic would take True for one second.
        wrong = next((name for name, value in values.items() if isinstance(value, bool)), None)
        if wrong is not None and wrong != "activity_defaults":
            raise PydanticCustomError(
                "bool", "{name}: give a value of its own type, not True or False", {"name": wrong}
            )
        return values

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
    if values.get("database_url") in (None, ""):
        if not embedded:
            raise ConfigurationError(
                "orchestrator_database_url is not set. Workflows need a database; add one line to your Celery "
                'configuration, for example: app.conf.orchestrator_database_url = "postgresql://localhost/shop"'
            )
        values["database_url"] = DEFAULT_SQLITE_URL
    try:
        return Settings(**values)
    except ValidationError as error:
        raise ConfigurationError(_wrong_value(error, values)) from None


def _wrong_value(error: ValidationError, values: Mapping[str, Any]) -> str:
    first = error.errors()[0]
    if not first["loc"]:
        return f"{PREFIX}{first['msg']}"
    name = str(first["loc"][0])
    # The URL may hold a password, and an object of somebody else's may not like to be shown.
    value = values.get(name)
    is_plain = isinstance(value, (str, float, timedelta)) or (isinstance(value, int) and value.bit_length() < 200)
    shown = f" (it is {value!a:.100})" if is_plain and name != "database_url" else f" (it is a {type(value).__name__})"
    return f"{PREFIX}{name}: {first['msg']}{shown}"


def _unknown_key(key: str) -> str:
    near = difflib.get_close_matches(key, Settings.model_fields, n=1)
    hint = f"; did you mean {PREFIX}{near[0]}?" if near else "; docs/settings.md lists the settings."
    return f"{PREFIX}{key} is not a setting{hint}"
