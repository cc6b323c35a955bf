"""Virtual hosts on a RabbitMQ server: a test with its own sees nobody else's messages.

`rabbitmqctl` takes most of a second to start, so virtual hosts are made a few at a time, by one call
of it. Where it may not be used (a broker elsewhere, no rights), tests share the virtual host of the
URL, and only names made with `queue_prefix` keep them apart.
"""

import os
import re
import secrets
import subprocess
import time
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from tests.support import rabbitmq_server, services
from tests.support.rabbitmq_server import RabbitMQServer

DEFAULT_URL = "amqp://guest:guest@127.0.0.1:5672//"
BATCH = 4


def given() -> str | None:
    """The URL that the environment names; then no other server is tried."""
    return os.environ.get(services.RABBITMQ_URL)


class VhostPool:
    """Hands out virtual hosts of one server.

    Args:
        url: any URL of the server, with the user that shall have the rights.
        own: the server when it is the test run's own; None for one that was found.
        label: part of the names.
    """

    def __init__(self, url: str, *, own: RabbitMQServer | None, label: str) -> None:
        self.url = url
        self.label = label
        self._own = own
        self._ready: list[str] = []
        self._done: list[str] = []
        self._made: list[str] = []
        self.exclusive = self._fill()

    def take(self) -> str:
        """URL of an unused virtual host; the server's own URL when none can be made."""
        if not self.exclusive:
            return self.url
        if not self._ready and not self._fill():
            raise RuntimeError(f"rabbitmqctl makes no more virtual hosts on {self.url}; it did before")
        return with_vhost(self.url, self._ready.pop())

    def give_back(self, url: str) -> None:
        """Have a virtual host deleted together with the next ones that are made: each costs megabytes."""
        if self.exclusive:
            self._done.append(unquote(urlsplit(url).path[1:]))

    def close(self) -> None:
        """Delete every virtual host it made, with all that is in them."""
        if self._made:
            self._eval(_deletion(self._made) + " ok.")

    def drop_stale(self) -> None:
        """Delete what killed test runs left behind hours ago."""
        if not self.exclusive:
            return
        self._made += [name for name in self._names() if services.stale(name, time.time())]

    def _fill(self) -> bool:
        user = urlsplit(self.url).username or "guest"
        names = [f"test_{int(time.time())}_{self.label}_{secrets.token_hex(4)}" for _ in range(BATCH)]
        made = "".join(
            f'rabbit_vhost:add(<<"{name}">>, <<"tests">>),'
            f" rabbit_auth_backend_internal:set_permissions("
            f'<<"{user}">>, <<"{name}">>, <<".*">>, <<".*">>, <<".*">>, <<"tests">>),'
            for name in names
        )
        try:
            self._eval(_deletion(self._done) + made + " ok.")
        except (OSError, subprocess.SubprocessError):
            return False
        self._made = [name for name in self._made if name not in self._done] + names
        self._done.clear()
        self._ready += names
        return rabbitmq_server.answers(with_vhost(self.url, names[0]))

    def _names(self) -> list[str]:
        answer = self._eval("[binary_to_list(Name) || Name <- rabbit_vhost:list_names()].")
        return re.findall(r'"([^"]+)"', answer)

    def _eval(self, expression: str) -> str:
        if self._own is not None:
            return self._own.ctl("eval", expression)
        return rabbitmq_server.run_ctl("eval", expression)


def _deletion(names: list[str]) -> str:
    return "".join(f'rabbit_vhost:delete(<<"{name}">>, <<"tests">>),' for name in names)


def with_vhost(url: str, vhost: str) -> str:
    """The URL with another virtual host."""
    return urlunsplit(urlsplit(url)._replace(path="/" + quote(vhost, safe="")))
