"""Settings and apps: a wrong key or value is an error that names it, at the first use, and nothing is connected to."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import celery
import pytest

from orchestrator import ConfigurationError, Observer, Orchestrator, OrchestratorError
from orchestrator.activity.definition import registry as activities
from orchestrator.config import PREFIX, Settings, read_settings
from orchestrator.store.database import Database
from tests.acceptance.bad_input import cases
from tests.acceptance.bad_input.cases import Case, params, refuse, variants

OF_DURATIONS = ("sweep_interval", "decision_timeout", "liveness_interval", "liveness_timeout", "publish_timeout",
    "resend_after", "resend_cap")  # fmt: skip
OF_COUNTS = ("payload_limit", "inbox_limit", "history_warn", "history_limit", "lost_limit", "pool_size")
OF_LABELS = ("namespace", "build_id")

NO_DURATION: dict[str, Any] = {
    **{name: value for name, value in cases.NOT_A_DURATION.items() if name not in ("text", "a decimal", "a hostile object")},
    **cases.NEGATIVE,
    "a word": "soon",
    "None": None,
}  # fmt: skip
NO_COUNT: dict[str, Any] = {
    "a bool": True, "zero": 0, "negative": -1, "a half": 1.5, "NaN": math.nan, "a word": "many", "None": None, "huge": cases.HUGE,
    "more than a database counts": 2**63, "a list": [1],
}  # fmt: skip
NO_LABEL: dict[str, Any] = {
    **{name: value for name, value in cases.NO_LABEL.items() if name not in ("empty", "bytes", "a hostile object")},
    "None": None,
}
NO_URL: dict[str, Any] = {
    "a number": 5, "a bool": True, "a list": ["sqlite://"], "a word": "postgres", "another database": "mysql://localhost/shop",
    "another driver": "postgresql+asyncpg://localhost/shop", "no port": "postgresql://localhost:port/shop", "NUL": "sqlite:///a\0b",
    "a lone surrogate": "\ud800", "a broker": "redis://localhost", "a directory that is not there": "sqlite:////not/there/shop.db",
    "a mode that SQLite has not": "sqlite:///shop.db?synchronous=off",
}  # fmt: skip
NO_OPTIONS: dict[str, Any] = {
    "a number": 3, "a bool": True, "a list": [], "an unknown option": {"retries": 3}, "a bad queue": {"queue": " "},
    "a bad policy": {"retry_policy": 3}, "a bad time-out": {"heartbeat_timeout": math.nan}, "no time": {"start_to_close_timeout": 0},
    "the library's own": {"legacy": True}, "the library's own, too": {"celery_options": {}}, "a key that is no text": {5: 5},
}  # fmt: skip

WRONG: dict[str, dict[str, Any]] = {
    **{name: {**NO_DURATION, **cases.ZERO} for name in OF_DURATIONS},
    "timer_horizon": NO_DURATION,
    **dict.fromkeys(OF_COUNTS, NO_COUNT),
    **dict.fromkeys(OF_LABELS, NO_LABEL),
    "namespace": {**NO_LABEL, "empty": ""},
    "decision_timeout": {**NO_DURATION, **cases.ZERO, "more than PostgreSQL can wait": timedelta(days=30)},
    "inline": {"unknown": "always", "a bool": True, "None": None},
    "database_url": NO_URL,
    "activity_defaults": NO_OPTIONS,
}


def app_with(**settings: Any) -> celery.Celery:
    app = celery.Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(
        {f"{PREFIX}database_url": "sqlite://", **{PREFIX + name: value for name, value in settings.items()}}
    )
    return app


def test_every_setting_is_tried() -> None:
    assert set(WRONG) == set(Settings.model_fields)


@pytest.mark.parametrize(
    ("name", "value"),
    [pytest.param(name, value, id=f"{name}-{case}") for name, found in WRONG.items() for case, value in found.items()],
)
def test_a_wrong_value_is_named_and_no_database_is_opened(
    name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    monkeypatch.setattr(Database, "read", lambda _: opened.append("read"))
    monkeypatch.setattr(Database, "write", lambda _: opened.append("write"))
    durable = Orchestrator(app_with(**{name: value}))
    with pytest.raises(ConfigurationError) as caught:
        _ = durable.settings
    error = str(caught.value)
    assert isinstance(caught.value, OrchestratorError)
    assert error.startswith(PREFIX + name), error
    assert error.isprintable()
    assert len(error) < 400
    assert opened == []


def test_a_setting_that_is_wrong_breaks_neither_the_app_nor_its_schedule() -> None:
    for value in ("soon", True, math.nan, math.inf, -1, None, cases.HUGE, [1]):
        app = app_with(sweep_interval=value)
        Orchestrator(app)
        app.finalize()
        assert len(app.conf.beat_schedule) == 1


def test_an_unknown_key_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(
        ConfigurationError, match="orchestrator_databse_url is not a setting; did you mean orchestrator_database_url"
    ):
        read_settings({"orchestrator_databse_url": "sqlite://"}, broker_url="memory://")
    with pytest.raises(ConfigurationError, match=r"orchestrator_colour is not a setting; docs/settings\.md"):
        read_settings({"orchestrator_colour": "blue"}, broker_url="memory://")


@pytest.mark.parametrize("broker", [None, "", "amqp://localhost", "redis://localhost", "filesystem://"])
@pytest.mark.parametrize("url", [None, ""])
def test_a_missing_database_is_told_with_one_line_to_add(broker: str | None, url: str | None) -> None:
    with pytest.raises(
        ConfigurationError, match=r'app\.conf\.orchestrator_database_url = "postgresql://localhost/shop"'
    ):
        read_settings({"orchestrator_database_url": url}, broker_url=broker)


def test_a_password_is_in_no_message() -> None:
    for url in (
        "mysql://ann:secret@localhost/shop",
        "postgresql://ann:secret@localhost:port/shop",
        ["//ann:secret@localhost"],
    ):
        with pytest.raises(ConfigurationError) as caught:
            _ = Orchestrator(app_with(database_url=url)).settings
        assert "secret" not in str(caught.value)


NOT_AN_APP: dict[str, Any] = {
    **cases.NOT_TEXT, "None": None, "a name": "shop", "its class": celery.Celery, "a module": celery}  # fmt: skip
NO_OBSERVERS: dict[str, Any] = {
    "one observer": Observer(), "its class": [Observer], "text": "observer", "None": None, "a number": 5, "functions": [print],
    "a hostile object": cases.Hostile(), "hostile objects": [cases.Hostile()],
}  # fmt: skip

APPS = {
    "Orchestrator": [
        *variants("app", lambda _, value: Orchestrator(value), NOT_AN_APP),
        *variants("observers", lambda _, value: Orchestrator(app_with(), observers=value), NO_OBSERVERS),
    ],
    "Orchestrator.of": [*variants("app", lambda _, value: Orchestrator.of(value), NOT_AN_APP)],
}


@pytest.mark.parametrize("case", params(APPS))
def test_what_is_no_app_is_named_and_gets_no_tasks(case: Case) -> None:
    before = activities.all()
    refuse(case.argument, lambda: case.call(None))
    assert activities.all() == before


def test_an_app_that_was_refused_can_still_get_its_orchestrator() -> None:
    app = app_with()
    refuse("observers", lambda: Orchestrator(app, observers=[print]))  # type: ignore[list-item]  # the case
    assert Orchestrator.of(app) is None
    durable = Orchestrator(app)
    assert Orchestrator.of(app) is durable
    with pytest.raises(ConfigurationError, match="Orchestrator already"):
        Orchestrator(app)
