"""Every blocking call of the client has an awaitable twin that does the same."""

import asyncio
import inspect
import threading
import time
from collections.abc import Callable

import pytest

from orchestrator.client import WorkflowClient, WorkflowHandle
from orchestrator.client.twins import Pauses, twin, waiting

# Calls that reach for nothing have no twin.
LOCAL = {"with_plain_values", "get_handle", "get_handle_for", "definition_of", "typed_values"}


class Counter:
    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self.slept: list[float] = []
        self.threads: set[int] = set()
        self._sleeper = sleep

    @property
    def _sleep(self) -> Callable[[float], None]:
        return self._note_and_sleep

    def _note_and_sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._sleeper(seconds)

    def add(self, a: int, *, b: int = 1) -> int:
        """Adds."""
        self.threads.add(threading.get_ident())
        return a + b

    aadd = twin(add)

    @waiting
    def count(self, limit: int) -> Pauses[str]:
        """Counts."""
        for _ in range(limit):
            self.threads.add(threading.get_ident())
            yield 0.001
        if limit > 5:
            raise TimeoutError("too far")
        return f"counted {limit}"

    acount = twin(count)


class Quick(Counter):
    _sleep = staticmethod(time.sleep)  # type: ignore[assignment]


def test_outside_of_tests_the_client_sleeps_on_the_system_clock():
    # Twins tell by it that nothing needs a thread while they wait.
    client = WorkflowClient(lambda: None)  # type: ignore[arg-type]
    assert client._sleep is time.sleep
    assert WorkflowHandle(client, id="w")._sleep is time.sleep


@pytest.mark.parametrize("cls", [WorkflowClient, WorkflowHandle])
def test_every_public_call_that_reaches_out_has_a_twin(cls):
    public = {name for name, value in vars(cls).items() if inspect.isfunction(value) and not name.startswith("_")}
    blocking = {name for name in public if not inspect.iscoroutinefunction(getattr(cls, name))} - LOCAL
    twins = {name for name in public if inspect.iscoroutinefunction(getattr(cls, name))}
    assert twins == {f"a{name}" for name in blocking}
    assert blocking


@pytest.mark.parametrize("cls", [WorkflowClient, WorkflowHandle])
def test_a_twin_takes_the_same_arguments(cls):
    for name, value in vars(cls).items():
        if inspect.iscoroutinefunction(value):
            assert inspect.signature(value) == inspect.signature(getattr(cls, name[1:]))


def test_a_twin_runs_the_call_in_a_thread_and_knows_its_name():
    counter = Counter()
    assert asyncio.run(counter.aadd(1, b=2)) == 3
    assert threading.get_ident() not in counter.threads
    assert Counter.aadd.__name__ == "aadd"
    assert Counter.aadd.__qualname__ == "Counter.aadd"
    assert "add" in (Counter.aadd.__doc__ or "")


def test_a_twin_calls_what_a_subclass_overrides():
    class Doubled(Counter):
        def add(self, a: int, *, b: int = 1) -> int:
            return 2 * super().add(a, b=b)

    assert asyncio.run(Doubled().aadd(1)) == 4


def test_a_waiting_call_sleeps_between_its_steps_and_answers():
    counter = Counter()
    assert counter.count(3) == "counted 3"
    assert counter.slept == [0.001] * 3


def test_a_waiting_call_passes_its_error_on():
    with pytest.raises(TimeoutError, match="too far"):
        Counter().count(6)
    with pytest.raises(TimeoutError, match="too far"):
        asyncio.run(Counter().acount(6))


def test_the_twin_of_a_waiting_call_waits_as_it_is_told_to_in_tests():
    counter = Counter()
    assert asyncio.run(counter.acount(3)) == "counted 3"
    assert counter.slept == [0.001] * 3


def test_hundreds_of_waiting_twins_hold_no_thread_while_they_wait():
    class Slow(Quick):
        @waiting
        def count(self, limit: int) -> Pauses[str]:
            yield 0.3
            return "done"

        acount = twin(count)

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(Slow().acount(1) for _ in range(300)))

    started = time.monotonic()
    assert asyncio.run(all_of_them()) == ["done"] * 300
    # The default executor has a few threads: three hundred sleeps in it would take over ten times as long.
    assert time.monotonic() - started < 3


def test_a_waiting_twin_can_be_cancelled():
    class Slow(Quick):
        @waiting
        def count(self, limit: int) -> Pauses[str]:
            while True:
                yield 0.01

        acount = twin(count)

    async def cancelled() -> None:
        await asyncio.wait_for(Slow().acount(1), 0.1)

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())
