"""A broker or a database that is away, or does not answer: callers learn within the limit what became of their call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.errors import Unavailable, WorkflowNotFound
from tests.chaos.conftest import BRISK, MakeYard
from tests.support.fixtures.own_servers import ServerFactory
from tests.support.own_server import OwnServer
from tests.support.waiting import wait_until

LIMIT = 2.0
"""Seconds: the default of orchestrator_publish_timeout."""
SLACK = 1.5
"""Seconds that a busy machine may add."""

Figure = Callable[[str, str], None]


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Returns how long a call took, in seconds, and its answer."""
    began = time.monotonic()
    answer = call()
    return time.monotonic() - began, answer


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", ["down", "black-holed"])
@pytest.mark.parametrize("kind", ["own_rabbitmq", "own_redis"])
def test_starts_and_signals_are_accepted_while_the_broker_is_away(
    make_yard: MakeYard, postgres_url: str, request: pytest.FixtureRequest, kind: str, how: str, figure: Figure
) -> None:
    factory: ServerFactory[OwnServer] = request.getfixturevalue(kind)
    broker = factory()
    yard = make_yard(broker.url, postgres_url, **BRISK)
    yard.worker()
    waiting = [yard.start("ch_waits") for _ in range(2)]
    for handle in waiting:
        wait_until(lambda handle=handle: handle.describe().waits, 40)
    threads = threading.active_count()

    (broker.stop if how == "down" else broker.freeze)()
    times = []
    for number, handle in enumerate(waiting):
        times.append(timed(lambda number=number: yard.start("ch_order", f"late{number}", 0, id=f"late{number}"))[0])
        times.append(timed(lambda handle=handle, number=number: handle.signal("go", f"v{number}"))[0])
    assert max(times) < LIMIT + SLACK
    started = [yard.durable.get_handle(f"late{number}") for number in range(2)]
    assert [handle.describe().status for handle in started] == ["PENDING"] * 2
    assert all(any(e.kind == "SignalReceived" for e in h.history().events) is False for h in waiting)

    (broker.start if how == "down" else broker.resume)()
    took, results = timed(lambda: [handle.result(timeout=90) for handle in waiting + started])
    assert results[:2] == ["v0", "v1"]
    assert [len(result) for result in results[2:]] == [10, 10]
    figure("longest call while the broker was away", f"{max(times):.2f} s")
    figure("all delivered and done after its return", f"{took:.1f} s")
    wait_until(lambda: threading.active_count() <= threads + 1, 30, message="no thread is left")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_with_the_database_down_callers_get_a_clear_error_and_nothing_is_half_done(
    make_yard: MakeYard, rabbitmq_url: str, own_database: OwnServer, figure: Figure
) -> None:
    yard = make_yard(rabbitmq_url, own_database.url, **BRISK)
    waiting = yard.start("ch_waits")
    before = yard.depth("celery")
    own_database.stop()
    times = []
    for call in (lambda: yard.start("ch_waits", id="never"), lambda: waiting.signal("go", "x")):
        began = time.monotonic()
        with pytest.raises(Unavailable) as caught:
            call()
        times.append(time.monotonic() - began)
        assert "database" in str(caught.value).lower()
    assert max(times) < 5 + SLACK
    assert yard.depth("celery") == before
    own_database.start()
    with pytest.raises(WorkflowNotFound):
        yard.durable.get_handle("never").describe()
    yard.worker()
    wait_until(lambda: waiting.describe().waits, 40)
    waiting.signal("go", "later")
    assert waiting.result(timeout=40) == "later"
    figure("longest call while the database was down", f"{max(times):.2f} s")
