"""A Redis server of a test's own."""

from collections.abc import Mapping, Sequence

import redis

from tests.support import services
from tests.support.own_server import OwnServer


class RedisServer(OwnServer):
    """Redis without a password.

    Args:
        settings: parameters of its configuration; by default nothing is kept on disk.
    """

    name = "redis"

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.settings = {"save": "", "appendonly": "no", **(settings or {})}
        super().__init__()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def _command(self) -> Sequence[str]:
        path = services.find_binary("redis-server")
        if path is None:
            services.missing("redis-server is not installed (Debian: apt install redis-server)")
        settings = {"bind": "127.0.0.1", "port": str(self.port), "dir": str(self.folder), **self.settings}
        return [str(path), *(part for key, value in settings.items() for part in (f"--{key}", value))]

    def _answers(self) -> bool:
        client = redis.Redis.from_url(self.url, socket_timeout=2)
        try:
            return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False
        finally:
            client.close()


def installed() -> bool:
    """True where `RedisServer` can be started."""
    return services.find_binary("redis-server") is not None
