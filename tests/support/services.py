"""What services there are, and what to do when there are none.

Each service is looked for at the URL in its environment variable if that is set, else at its default
address; where nothing answers, a server of the test run's own is started from the installed binaries.
Without those the test is skipped with the reason. In CI nothing is skipped: a missing service fails.
"""

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

POSTGRES_URL = "ORCHESTRATOR_TEST_POSTGRES_URL"
RABBITMQ_URL = "ORCHESTRATOR_TEST_RABBITMQ_URL"
REDIS_URL = "ORCHESTRATOR_TEST_REDIS_URL"

# Databases and virtual hosts are named test_<seconds since the epoch>_…, so that a later run can tell
# what a killed one left behind.
STALE_AFTER = 6 * 3600


def required() -> bool:
    """True where a missing service is a failure."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def missing(reason: str) -> NoReturn:
    """Skip the test that needs a service nobody has, or fail it in CI."""
    if required():
        pytest.fail(f"{reason}; CI=true makes this a failure", pytrace=False)
    pytest.skip(reason)


def find_binary(name: str, *patterns: str) -> Path | None:
    """Look for an executable in the PATH, then along glob patterns below / (the newest wins)."""
    for pattern in patterns:
        if found := sorted(Path("/").glob(pattern.lstrip("/")), reverse=True):
            return found[0]
    path = shutil.which(name)
    return Path(path) if path else None


def stale(name: str, now: float) -> bool:
    """True for the name of something that a test run made hours ago."""
    parts = name.split("_")
    return parts[0] == "test" and len(parts) > 2 and parts[1].isdigit() and now - int(parts[1]) > STALE_AFTER
