"""Histories come back as they were written, in their order."""

import pytest
from sqlalchemy import update

from orchestrator.errors import ReplayError
from orchestrator.model import events
from orchestrator.store import history, schema
from orchestrator.store.database import Database
from tests.conformance.store.builders import put_run, timer_started

BODIES: list[events.EventBody] = [
    events.RunStarted(),
    events.SignalReceived(name="a", signal_id="s", payload=b"\x00\xff[1]"),
    events.CancelRequested(reason="because \ud800 \x00 🛒"),
    events.TimerFired(number=2**53),
    events.ActivityCompleted(number=1, attempt=3, result=b""),
    events.ActivityFailed(number=1, attempt=3, failure=b"{}"),
    events.ActivityScheduled(number=1, name="charge", queue=None, input_digest="d"),
    events.ActivityScheduled(number=1, name="charge", queue="q", input_digest="d"),
    events.TimerStarted(number=1, due_at=2**62, duration_us=None),
    events.SideEffectRecorded(number=1, name="x", value=b"v"),
    events.RunCompleted(result=b"r"),
    events.RunTimedOut(),
]


def test_every_kind_of_event_comes_back_as_it_was(db: Database) -> None:
    put_run(db)
    written = [events.Event(seq=seq, at=seq * 7, body=body) for seq, body in enumerate(BODIES, start=1)]
    db.run(lambda conn: history.append(conn, "run-1", written), what="test")
    with db.read() as conn:
        assert history.read(conn, "run-1") == written


def test_a_history_is_read_in_pages_from_either_end(db: Database) -> None:
    put_run(db)
    put_run(db, "other")
    for run_id in ("run-1", "other"):
        with db.write() as conn:
            history.append(conn, run_id, [timer_started(seq) for seq in range(1, 8)])

    def seqs(**page: object) -> list[int]:
        with db.read() as conn:
            return [event.seq for event in history.read(conn, "run-1", **page)]  # type: ignore[arg-type]

    assert seqs() == [1, 2, 3, 4, 5, 6, 7]
    assert seqs(after=5) == [6, 7]
    assert seqs(after=2, limit=3) == [3, 4, 5]
    assert seqs(limit=2, descending=True) == [7, 6]
    assert seqs(after=7) == []
    assert seqs(before=6, limit=2, descending=True) == [5, 4]
    assert seqs(after=2, before=5) == [3, 4]


def test_thousands_of_events_are_appended_at_once(db: Database) -> None:
    put_run(db)
    db.run(lambda conn: history.append(conn, "run-1", [timer_started(n) for n in range(1, 3001)]), what="test")
    with db.read() as conn:
        assert [event.seq for event in history.read(conn, "run-1")] == list(range(1, 3001))


def test_appending_nothing_is_fine(db: Database) -> None:
    db.run(lambda conn: history.append(conn, "run-1", []), what="test")


def test_an_event_of_a_later_version_is_refused_not_guessed_at(db: Database) -> None:
    put_run(db)
    db.run(lambda conn: history.append(conn, "run-1", [timer_started(1)]), what="test")
    db.run(lambda conn: conn.execute(update(schema.history).values(version=99)), what="test")
    with pytest.raises(ReplayError, match="schema version 99"), db.read() as conn:
        history.read(conn, "run-1")
