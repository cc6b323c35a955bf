"""A PostgreSQL server of a test's own."""

import functools
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg2

from tests.support import reaper, services
from tests.support.own_server import OwnServer, as_root

# Durability against power cuts is bought with fsync; a killed server process loses nothing without.
FAST = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "32MB", "autovacuum_naptime": "5s"}


class PostgresServer(OwnServer):
    """PostgreSQL with trust authentication, on TCP only.

    Args:
        settings: parameters for its command line, such as `max_connections`.
    """

    name = "postgres"
    stop_signal = signal.SIGINT  # "fast": does not wait for clients to leave by themselves

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        # PostgreSQL refuses to run as root; Debian's package brings the user.
        self.user = "postgres" if as_root() else None
        self.settings = {**FAST, **(settings or {})}
        super().__init__()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def _prepare(self) -> None:
        subprocess.run(["cp", "-a", str(_empty_cluster(self.user)), str(self.folder / "data")], check=True)
        if self.user:
            shutil.chown(self.folder, self.user, self.user)

    def _command(self) -> Sequence[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            **self.settings,
        }
        flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return [str(binary("postgres")), "-D", str(self.folder / "data"), *flags]

    def _answers(self) -> bool:
        try:
            psycopg2.connect(self.url, connect_timeout=2).close()
        except psycopg2.OperationalError:
            return False
        return True


def installed() -> bool:
    """True where `PostgresServer` can be started."""
    return services.find_binary("initdb", _pattern("initdb")) is not None


def binary(name: str) -> Path:
    """The newest installed executable of that name."""
    path = services.find_binary(name, _pattern(name))
    if path is None:
        services.missing(f"{name} is not installed (Debian: apt install postgresql)")
    return path


def _pattern(name: str) -> str:
    return f"/usr/lib/postgresql/*/bin/{name}"


@functools.cache
def _empty_cluster(user: str | None) -> Path:
    """A data folder fresh from initdb, made once: copying it is ten times faster."""
    folder = Path(tempfile.mkdtemp(prefix="orchestrator-initdb-"))
    reaper.announce_folder(folder)
    if user:
        shutil.chown(folder, user, user)
    data = folder / "data"
    subprocess.run(
        [str(binary("initdb")), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
        check=True,
        capture_output=True,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        cwd=folder,
    )
    return data
