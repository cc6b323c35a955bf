"""Runs are unique where they must be, found where they are looked for, and listed in a stable order."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.model.records import Attention, RunStatus
from orchestrator.store import runs
from orchestrator.store.database import Database
from tests.conformance.store.builders import a_run, get_run, put_run


def test_a_run_comes_back_as_it_was_inserted(db: Database) -> None:
    run = a_run(
        memo=b"\x00memo",
        declared_signals=("a", "b"),
        close_reason="",
        next_send_at=5,
        deadline_at=6,
        request_id="request",
        failure=b"why",
        blocked_by="fingerprint",
        build_id="build",
    )
    db.run(lambda conn: runs.insert(conn, run), what="test")
    assert get_run(db) == run


@pytest.mark.parametrize("text", ["a/b c'\"%;--", "ключ-🛒", "ẞ", "x" * 255, " ", "\\", "\u200b", "%s:name"])
def test_names_are_kept_byte_for_byte(db: Database, text: str) -> None:
    put_run(db, "one", workflow_id=text, workflow_type=text, queue=text, namespace=text, request_id=text)
    with db.read() as conn:
        found = runs.find_open(conn, text, text)
        assert found is not None
        assert (found.workflow_id, found.workflow_type, found.request_id) == (text, text, text)
        assert runs.find_request(conn, text, text, text) == found


def test_names_that_only_look_alike_are_different(db: Database) -> None:
    for number, workflow_id in enumerate(["order", "Order", "order ", "é", "e\u0301"]):
        put_run(db, f"run-{number}", workflow_id=workflow_id)


def test_a_closing_reason_may_hold_any_character(db: Database) -> None:
    reason = "NUL \x00, surrogate \ud800, emoji 🛒"
    put_run(db, status=RunStatus.TERMINATED, closed_at=2, close_reason=reason)
    assert get_run(db).close_reason == reason


def test_a_second_open_run_of_a_workflow_id_is_not_inserted(db: Database) -> None:
    put_run(db, "one", workflow_id="order")
    with db.write() as conn:
        assert not runs.insert(conn, a_run("two", workflow_id="order"))
    assert get_run(db, "one").workflow_id == "order"


def test_another_namespace_may_have_the_same_workflow_id_open(db: Database) -> None:
    put_run(db, "one", workflow_id="order")
    put_run(db, "two", workflow_id="order", namespace="other")


def test_a_workflow_id_may_be_used_again_once_its_run_is_closed(db: Database) -> None:
    put_run(db, "one", workflow_id="order", status=RunStatus.COMPLETED, closed_at=2)
    put_run(db, "two", workflow_id="order", created_at=2_000)
    with db.read() as conn:
        latest = runs.find_latest(conn, "default", "order")
    assert latest is not None
    assert latest.run_id == "two"


def test_a_start_request_makes_one_run_even_when_that_has_closed(db: Database) -> None:
    put_run(db, "one", workflow_id="order", request_id="r", status=RunStatus.FAILED, closed_at=2)
    with db.write() as conn:
        assert not runs.insert(conn, a_run("two", workflow_id="order", request_id="r"))
        assert runs.insert(conn, a_run("three", workflow_id="other", request_id="r"))


def test_the_open_leaf_of_a_lineage_is_its_open_run(db: Database) -> None:
    put_run(db, "one", status=RunStatus.CONTINUED_AS_NEW, closed_at=2, successor_run_id="two")
    put_run(db, "two", lineage_id="one", previous_run_id="one", created_at=2_000)
    with db.read() as conn:
        leaf = runs.open_leaf(conn, "one")
    assert leaf is not None
    assert leaf.run_id == "two"


def test_an_ended_lineage_has_no_open_leaf_but_a_latest_run(db: Database) -> None:
    put_run(db, "one", status=RunStatus.COMPLETED, closed_at=2)
    with db.read() as conn:
        assert runs.open_leaf(conn, "one") is None
        latest = runs.latest_of_lineage(conn, "one")
    assert latest is not None
    assert latest.run_id == "one"


def test_an_update_sets_columns_when_the_row_is_as_expected(db: Database) -> None:
    run = put_run(db, deadline_at=7)
    values: dict[str, Any] = {"status": RunStatus.RUNNING, "last_seq": 3, "declared_signals": ("x",), "started_at": 4}
    with db.write() as conn:
        assert not runs.update(conn, "run-1", values, expect={"last_seq": 1})
        assert not runs.update(conn, "run-1", values, expect={"deadline_at": None})
        assert not runs.update(conn, "nobody", values)
        expected = {"status": {RunStatus.PENDING, RunStatus.RUNNING}, "closed_at": None, "deadline_at": 7}
        assert runs.update(conn, "run-1", values, expect=expected)
    assert get_run(db) == replace(run, **values)


def test_the_version_of_a_run_is_its_sequence_number_and_token(db: Database) -> None:
    put_run(db, last_seq=4, decision_token="t")
    with db.read() as conn:
        assert runs.version(conn, "run-1") == (4, "t")
        assert runs.version(conn, "nobody") is None


def test_pages_of_a_list_follow_one_another_without_gap_or_repeat(db: Database) -> None:
    for number in range(10):
        put_run(db, f"run-{number}", created_at=number // 3, request_id=f"r{number}")
    put_run(db, "elsewhere", namespace="other")
    seen, cursor = [], None
    while True:
        with db.read() as conn:
            page = runs.list_runs(conn, "default", limit=4, cursor=cursor)
        if not page:
            break
        seen += [run.run_id for run in page]
        cursor = (page[-1].created_at, page[-1].run_id)
    assert seen == [f"run-{number}" for number in reversed(range(10))]


def test_a_list_is_narrowed_by_status_type_attention_and_id(db: Database) -> None:
    put_run(db, "open", workflow_type="A")
    put_run(db, "blocked", workflow_type="B", status=RunStatus.RUNNING, attention=Attention.BLOCKED)
    put_run(db, "failed", workflow_type="A", status=RunStatus.FAILED, closed_at=2)
    put_run(db, "done", workflow_type="B", status=RunStatus.COMPLETED, closed_at=2)

    def listed(**filters: object) -> set[str]:
        with db.read() as conn:
            return {run.run_id for run in runs.list_runs(conn, "default", limit=10, **filters)}  # type: ignore[arg-type]

    assert listed() == {"open", "blocked", "failed", "done"}
    assert listed(status=RunStatus.FAILED) == {"failed"}
    assert listed(status=[RunStatus.PENDING, RunStatus.RUNNING]) == {"open", "blocked"}
    assert listed(status={RunStatus.RUNNING, RunStatus.COMPLETED}) == {"blocked", "done"}
    assert listed(workflow_type="A") == {"open", "failed"}
    assert listed(attention=Attention.BLOCKED) == {"blocked"}
    assert listed(attention=Attention.NONE, workflow_type="B") == {"done"}
    assert listed(workflow_id="id-of-done") == {"done"}
    assert listed(status="FAILED") == {"failed"}


def test_lists_and_the_sweep_leave_the_big_payloads_out(db: Database) -> None:
    put_run(db, input=b"x" * 1000, memo=b"memo", next_send_at=1)
    with db.read() as conn:
        for run in (runs.list_runs(conn, "default", limit=1)[0], runs.due(conn, 1, 1)[0]):
            assert (run.input, run.result, run.memo) == (b"", None, b"memo")


def test_runs_are_due_in_order_of_their_time(db: Database) -> None:
    for number, instant in enumerate([30, 10, 20, None, 99]):
        put_run(db, f"run-{number}", next_send_at=instant)
    with db.write() as conn:
        assert [run.run_id for run in runs.due(conn, 50, 10)] == ["run-1", "run-2", "run-0"]
        assert [run.run_id for run in runs.due(conn, 50, 2)] == ["run-1", "run-2"]


def test_open_runs_past_their_deadline_are_found(db: Database) -> None:
    put_run(db, "past", deadline_at=10)
    put_run(db, "future", deadline_at=30)
    put_run(db, "closed", deadline_at=5, status=RunStatus.COMPLETED, closed_at=2)
    with db.read() as conn:
        assert [run.run_id for run in runs.past_deadline(conn, 20, 10)] == ["past"]


def test_the_next_due_time_is_the_earliest_of_both_questions(db: Database) -> None:
    with db.read() as conn:
        assert runs.next_due(conn) is None
    put_run(db, "one", next_send_at=20, deadline_at=30)
    put_run(db, "two", deadline_at=10)
    with db.read() as conn:
        assert runs.next_due(conn) == 10
