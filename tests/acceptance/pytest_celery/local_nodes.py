"""pytest-celery's nodes over what runs here: no container engine, a worker is a process of its own."""

from __future__ import annotations

import signal as signals
from typing import Any

from pytest_celery import CeleryTestContainer

from tests.support.celery_worker import CeleryWorker


class LocalContainer(CeleryTestContainer):
    """What the plugin takes for a container, without the engine that its base class talks to."""

    def __init__(self, name: str, **config: Any) -> None:
        self._label = name  # the base class would ask the engine: it is not called
        self._config = config

    @property
    def celeryconfig(self) -> dict[str, Any]:
        return dict(self._config)

    @property
    def name(self) -> str:
        return self._label

    @property
    def id(self) -> str:
        return f"{self._label}-{'0' * 12}"

    @property
    def status(self) -> str:
        return "running"

    def ready(self) -> bool:
        return True

    def logs(self) -> str:
        return ""

    def reload(self) -> None:
        """Nothing is cached that could be out of date."""

    def teardown(self) -> None:
        """The service stays: it is the machine's."""


class LocalService(LocalContainer):
    """A broker or result back end that runs here, at the URL of this test's own place in it."""

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name, url=url, host_url=url)


class LocalWorker(LocalContainer):
    """A worker process under the plugin's hand."""

    def __init__(self, process: CeleryWorker) -> None:
        super().__init__(process.hostname)
        self.process = process

    @property
    def status(self) -> str:
        return "running" if self.process.is_running() else "exited"

    def ready(self) -> bool:
        return self.process.is_ready()

    def logs(self) -> str:
        return self.process.logs()

    def kill(self, signal: str | int = "SIGKILL") -> None:
        """SIGKILL ends the parent and its children, as the end of a container would."""
        number = signals.Signals[signal] if isinstance(signal, str) else signals.Signals(signal)
        if number == signals.SIGKILL:
            self.process.kill()
        else:
            self.process.signal(number)
            self.process.wait()

    def restart(self, timeout: float = 30) -> None:
        """Starts it again, after ending it where it still runs; the log goes on."""
        if self.process.is_running():
            self.process.terminate(timeout)
        self.process.restart()

    def teardown(self) -> None:
        self.process.close()
