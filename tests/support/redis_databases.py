"""Numbered databases on a Redis server that other people use as well.

There are sixteen, and nobody is asked before using one. So a test run takes only an empty one, and
holds a key in database 0 that tells other test runs to keep off. The key expires, should the run be
killed.
"""

import contextlib
import os
import secrets
from urllib.parse import urlsplit, urlunsplit

import redis

from tests.support import services

DEFAULT_URL = "redis://127.0.0.1:6379/0"
CLAIM_SECONDS = services.STALE_AFTER


def given() -> str | None:
    """The URL that the environment names; then no other server is tried."""
    return os.environ.get(services.REDIS_URL)


class ClaimedDatabase:
    """One database of the server at `url`, held until `release`."""

    def __init__(self, url: str, number: int, token: str) -> None:
        self.url = urlunsplit(urlsplit(url)._replace(path=f"/{number}"))
        self._server_url = url
        self._number = number
        self._token = token

    def empty(self) -> None:
        """Delete everything in it."""
        with contextlib.closing(redis.Redis.from_url(self.url)) as client:
            client.flushdb()

    def release(self) -> None:
        """Empty it and let others have it."""
        self.empty()
        with contextlib.closing(redis.Redis.from_url(self._server_url, db=0)) as client:
            if client.get(_key(self._number)) == self._token.encode():
                client.delete(_key(self._number))


def why_unusable(url: str) -> str | None:
    """The reason why the server does not answer; None when it does."""
    try:
        with contextlib.closing(redis.Redis.from_url(url, socket_timeout=3)) as client:
            client.ping()
    except redis.RedisError as error:
        return str(error)
    return None


def claim(url: str) -> ClaimedDatabase | None:
    """Take an empty database, the highest number first; None when all are in use."""
    token = secrets.token_hex(8)
    for number in range(15, 0, -1):
        with contextlib.closing(redis.Redis.from_url(url, db=0)) as client:
            if not client.set(_key(number), token, nx=True, ex=CLAIM_SECONDS):
                continue
            claimed = ClaimedDatabase(url, number, token)
            if _is_empty(claimed.url):
                return claimed
            client.delete(_key(number))
    return None


def _key(number: int) -> str:
    return f"orchestrator-tests:database:{number}"


def _is_empty(url: str) -> bool:
    with contextlib.closing(redis.Redis.from_url(url)) as client:
        try:
            return client.dbsize() == 0
        except redis.ResponseError:  # the server has fewer databases
            return False
