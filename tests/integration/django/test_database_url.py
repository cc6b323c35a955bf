"""A database as Django's settings describe it is the same one as a URL."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator import ConfigurationError
from orchestrator.store.engines import parse_url

pytest.importorskip("django")

from orchestrator.contrib.django import database_url

POSTGRESQL = "django.db.backends.postgresql"
SQLITE = "django.db.backends.sqlite3"


@pytest.mark.parametrize(
    ("database", "url"),
    [
        ({"NAME": "shop"}, "postgresql:///shop"),
        ({"NAME": "shop", "HOST": "db", "PORT": 5433, "USER": "ann"}, "postgresql://ann@db:5433/shop"),
        ({"NAME": "shop", "HOST": "::1", "PORT": ""}, "postgresql://[::1]/shop"),
        (
            {"NAME": "shop", "HOST": "/run/pg", "PORT": "5433", "USER": "ann"},
            "postgresql://ann@:5433/shop?host=%2Frun%2Fpg",
        ),
        ({"OPTIONS": {"service": "shop"}}, "postgresql:///?service=shop"),
        (
            {"NAME": "shop", "OPTIONS": {"sslmode": "require", "pool": True, "isolation_level": 4}},
            "postgresql:///shop?sslmode=require",
        ),
    ],
)
def test_postgresql(database: dict[str, Any], url: str):
    assert database_url({"ENGINE": POSTGRESQL, **database}) == url
    assert database_url({"ENGINE": "django.contrib.gis.db.backends.postgis", **database}) == url


def test_what_has_a_meaning_in_urls_comes_through():
    url = database_url({"ENGINE": POSTGRESQL, "NAME": "a b?%#", "USER": "a@b", "PASSWORD": "p/:?#@%", "HOST": "db"})
    parsed = parse_url(url)
    assert (parsed.database, parsed.username, parsed.password, parsed.host) == ("a b?%#", "a@b", "p/:?#@%", "db")


@pytest.mark.parametrize("path", ["/srv/shop/db.sqlite3", Path("/srv/shop/db.sqlite3"), "/srv/a b/ü?#%.db"])
def test_sqlite(path: Any):
    assert parse_url(database_url({"ENGINE": SQLITE, "NAME": path})).database == str(path)


@pytest.mark.parametrize(
    ("database", "match"),
    [
        ({"ENGINE": "django.db.backends.mysql", "NAME": "shop"}, "not in 'django.db.backends.mysql'"),
        ({"NAME": "shop"}, "without ENGINE"),
        ({"ENGINE": POSTGRESQL}, "no NAME"),
        ({"ENGINE": SQLITE}, "no NAME"),
    ],
)
def test_another_database_or_none_is_refused(database: dict[str, Any], match: str):
    with pytest.raises(ConfigurationError, match=match):
        database_url(database)
