"""A RabbitMQ server of a test's own."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import amqp
from kombu.utils.url import url_to_parts

from tests.support import services
from tests.support.own_server import OwnServer
from tests.support.ports import free_port
from tests.support.processes import ManagedProcess

# The scripts themselves: Debian's wrappers in /usr/sbin change the user and drop the environment.
SCRIPTS = ("/usr/lib/rabbitmq/bin", "/usr/local/sbin", "/opt/rabbitmq/sbin")


class RabbitMQServer(OwnServer):
    """RabbitMQ with the guest account and without plugins.

    Everything that would tie it to another node on this machine is its own: name, cookie, ports, data
    and the port mapper (epmd), which otherwise would stay behind as a daemon.

    Args:
        settings: lines of rabbitmq.conf, such as `{"consumer_timeout": "10000"}` (milliseconds).
    """

    name = "rabbitmq"
    start_timeout = 90.0

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.settings = dict(settings or {})
        self.node = f"test-{self.port}@localhost"
        self.env = {
            "HOME": str(self.folder),  # the cookie lives here
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "no-such-file"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none -start_epmd false",
        }
        self.process.env = self.env
        self.epmd = ManagedProcess(
            [str(_port_mapper() or "epmd")], log_path=self.folder / "epmd.log", env=self.env, cwd=self.folder
        )

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def ctl(self, *args: str) -> str:
        """Run `rabbitmqctl` against this node and return what it prints."""
        return run_ctl(*args, env={**os.environ, **self.env})

    def close(self) -> None:
        self.process.close()
        self.epmd.close()
        super().close()

    def _prepare(self) -> None:
        lines = [f"{key} = {value}\n" for key, value in self.settings.items()]
        (self.folder / "rabbitmq.conf").write_text("".join(lines))
        (self.folder / "enabled_plugins").write_text("[].\n")

    def _command(self) -> Sequence[str]:
        path = script("rabbitmq-server")
        if path is None:
            services.missing("rabbitmq-server is not installed (Debian: apt install rabbitmq-server)")
        if not self.epmd.is_running():
            self.epmd.start()
        return [str(path)]

    def _answers(self) -> bool:
        return answers(self.url)


def answers(url: str, timeout: float = 3.0) -> bool:
    """True when an AMQP client gets a connection to the virtual host of the URL."""
    return why_not(url, timeout) is None


def why_not(url: str, timeout: float = 3.0) -> str | None:
    """The reason why there is no AMQP connection to be had at the URL; None when there is."""
    _, host, port, user, password, vhost, _ = url_to_parts(url)
    connection = amqp.Connection(
        host=f"{host}:{port or 5672}",
        userid=user or "guest",
        password=password or "guest",
        virtual_host=vhost or "/",
        connect_timeout=timeout,
        read_timeout=timeout,
    )
    try:
        connection.connect()
    except (OSError, amqp.AMQPError) as error:
        return str(error) or type(error).__name__
    finally:
        connection.collect()
    return None


def installed() -> bool:
    """True where `RabbitMQServer` can be started."""
    return script("rabbitmq-server") is not None and _port_mapper() is not None


def _port_mapper() -> Path | None:
    return services.find_binary("epmd", "/usr/lib/erlang/erts-*/bin/epmd")


def script(name: str) -> Path | None:
    """The script of that name that heeds the environment."""
    for folder in map(Path, SCRIPTS):
        if (folder / name).exists():
            return folder / name
    return None


def run_ctl(*args: str, env: Mapping[str, str] | None = None, timeout: float = 60.0) -> str:
    """Run `rabbitmqctl`, by default against the node of this machine.

    Raises:
        OSError: it is not installed.
        subprocess.SubprocessError: it failed, for example since the cookie may not be read.
    """
    # For the shared node Debian's wrapper is right: it becomes the user that owns the cookie.
    path = script("rabbitmqctl") if env is not None else services.find_binary("rabbitmqctl")
    if path is None:
        raise OSError("rabbitmqctl is not installed")
    done = subprocess.run([str(path), *args], env=env, check=True, capture_output=True, text=True, timeout=timeout)
    return done.stdout
