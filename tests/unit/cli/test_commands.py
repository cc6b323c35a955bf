"""Starting, signalling, querying and looking at workflows from the command line."""

import json
from typing import Any

import pytest

from orchestrator.model.records import RunStatus
from tests.unit.cli.conftest import Shop


def test_start_prints_the_run_and_finds_it_again(shop: Shop):
    first = shop.json("start", "client.echo", "a", "--id", "w")
    again = shop.json("start", "client.echo", "a", "--id", "w")
    assert (first["id"], first["created"], again["created"]) == ("w", True, False)
    assert again["run_id"] == first["run_id"]
    assert shop.text("start", "client.echo", "a", "--id", "w") == f"Found w (run {first['run_id']})\n"


def test_arguments_are_text_for_a_str_and_json_elsewhere(shop: Shop):
    shop.json("start", "client.echo", "42", "3", "--id", "text")
    assert shop.durable.get_handle("text").describe().input == ["42", 3]
    shop.json("start", "client.anything", '{"a": [1, null]}', "--id", "json")
    assert shop.durable.get_handle("json").describe().input == [{"a": [1, None]}]
    shop.json("start", "client.anything", "plain words", "--id", "words")
    assert shop.durable.get_handle("words").describe().input == ["plain words"]


def test_inputs_are_json_with_the_types_of_the_workflow(shop: Shop):
    shop.json("start", "client.order", "--input", '{"id": "1", "price": "2.50"}', "--id", "w")
    shop.decide()
    assert shop.json("result", "w")["result"] == {"id": "1", "price": "5.00"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("client.echo",), "value"),
        (("client.echo", "a", "many"), "times"),
        (("client.echo", "a", "1", "2"), "arguments"),
        (("client.echo", "a", "--input", "1"), "not both"),
        (("client.echo", "--input", "{"), "--input number 1 is not JSON"),
        (("client.echo", "a", "--memo", "{"), "--memo is not JSON"),
        (("client.echo", "a", "--id", " w"), "id: must not begin or end with a blank"),
        (("client.echo", "a", "--id-reuse-policy", "sometimes"), "sometimes"),
        (("client.ech", "a"), "did you mean 'client.echo'"),
        ((), "Missing argument"),
        (("client.echo", "a", "--unknown"), "No such option"),
        (("client.echo", "a", "--wait", "--timeout", "soon"), "soon"),
        (("client.echo", "a", "--wait", "--timeout", "-1"), "--timeout"),
    ],
)
def test_a_wrong_start_is_a_matter_of_usage_and_starts_nothing(shop: Shop, args: tuple[str, ...], message: str):
    assert message in shop.error("start", *args, code=64)
    assert [item for item in shop.durable.list().items if "--timeout" not in args] == []


def test_start_can_wait_for_the_result(shop: Shop):
    shop.durable.start("client.echo", "a", 3, id="w")
    shop.decide()
    assert shop.text("start", "client.echo", "a", "3", "--id", "w", "--wait") == "aaa\n"
    assert shop.json("start", "client.echo", "a", "3", "--id", "w", "--wait")["result"] == "aaa"


def test_a_taken_id_is_refused(shop: Shop):
    shop.json("start", "client.echo", "a", "--id", "w")
    assert "is taken" in shop.error("start", "client.echo", "b", "--id", "w")


def test_a_result_that_is_late_a_failure_and_a_blocked_run_end_with_one(shop: Shop):
    shop.json("start", "client.waiter", "--id", "late")
    assert "is PENDING after 0.1 s" in shop.error("result", "late", "--timeout", "0.1")
    shop.json("start", "client.failing", "declined", "--id", "failed")
    shop.json("start", "client.broken", "--id", "blocked")
    shop.decide()
    failed = shop.error("result", "failed")
    assert failed.count("Declined: declined") == 1
    assert "caused by ValueError: the root" in failed
    assert "is blocked" in shop.error("result", "blocked")
    assert "after 0.1 s" in shop.error("result", "blocked", "--wait-when-blocked", "--timeout", "0.1")


def test_errors_are_json_for_programs(shop: Shop):
    result = shop.invoke("show", "nobody", "--json")
    assert result.exit_code == 1
    assert result.stdout == ""
    told = json.loads(result.stderr)["error"]
    assert (told["type"], told["exit_code"]) == ("WorkflowNotFound", 1)
    assert "'nobody'" in told["message"]


def test_a_signal_is_sent_once_under_its_id(shop: Shop):
    shop.json("start", "client.Approval", "500", "--id", "w")
    assert shop.json("signal", "w", "approve", "ann", "--signal-id", "s")["stored"] is True
    assert shop.json("signal", "w", "approve", "ann", "--signal-id", "s")["stored"] is False
    assert "nothing was stored" in shop.text("signal", "w", "approve", "ann", "--signal-id", "s")
    assert "was sent to run" in shop.error("signal", "w", "approve", "bob", "--signal-id", "s")
    assert "by" in shop.error("signal", "w", "approve", "--input", "5", code=64)
    shop.decide()
    assert shop.text("result", "w") == "500 by ann\n"


def test_a_signal_takes_text_and_json_as_its_parameters_say(shop: Shop):
    shop.json("start", "client.Approval", "500", "--id", "w")
    shop.json("signal", "w", "approve", "42", "2026-01-02T03:04:05Z")
    shop.decide()
    assert shop.json("query", "w", "when", "at")["answer"] == ["at", "2026-01-02T03:04:05Z"]


def test_a_query_answers_and_says_why_it_can_not(shop: Shop):
    shop.json("start", "client.Approval", "500", "--id", "w")
    shop.decide()
    assert shop.text("query", "w", "pending") == "true\n"
    assert shop.json("query", "w", "pending") == {"id": "w", "query": "pending", "answer": True}
    assert "no query 'nothing'" in shop.error("query", "w", "nothing")


def test_cancel_and_terminate_say_what_they_did(shop: Shop):
    for verb, status in (("cancel", RunStatus.CANCELED), ("terminate", RunStatus.TERMINATED)):
        shop.json("start", "client.waiter", "--id", verb)
        shop.decide()
        assert verb in shop.text(verb, verb, "--reason", "no longer wanted").lower()
        shop.decide()
        described = shop.durable.get_handle(verb).describe()
        assert (described.status, described.close_reason) == (status, "no longer wanted")
        assert "has ended" in shop.error(verb, verb)


def test_a37_an_unknown_workflow_is_refused_with_one(shop: Shop):
    for args in (("show",), ("history",), ("result",), ("cancel",), ("terminate",)):
        assert "'nobody'" in shop.error(*args, "nobody")
    assert "'nobody'" in shop.error("signal", "nobody", "go")
    assert "'nobody'" in shop.error("query", "nobody", "state")


def test_list_filters_and_pages(shop: Shop):
    for name in ("a", "b", "c"):
        shop.json("start", "client.waiter", "--id", name)
    first = shop.json("list", "--limit", "2")
    second = shop.json("list", "--limit", "2", "--cursor", first["next_cursor"])
    assert sorted(item["id"] for item in first["items"] + second["items"]) == ["a", "b", "c"]
    assert "--cursor" in shop.text("list", "--limit", "2")
    assert shop.json("list", "--status", "FAILED")["items"] == []
    assert "No runs." in shop.text("list", "--status", "FAILED")
    assert "PENDING" in shop.text("list", "--id", "a")
    assert "status" in shop.error("list", "--status", "DONE", code=64)
    assert "limit" in shop.error("list", "--limit", "0", code=64)


def test_show_tells_what_a_run_waits_for(shop: Shop):
    shop.json("start", "client.busy", "--id", "w", "--memo", '{"by": "ann"}')
    shop.decide()
    shown = shop.text("show", "w")
    for part in (
        "client.busy",
        "RUNNING",
        "client.charge",
        "client.ship",
        "Open timers",
        "go",
        '{"by": "ann"}',
        "Next wake-up",
    ):
        assert part in shown
    described = shop.json("show", "w")
    assert [item["name"] for item in described["activities"]] == ["client.charge", "client.ship"]
    assert described["status"] == "RUNNING"


def test_history_shows_events_in_pages(shop: Shop):
    shop.json("start", "client.echo", "a", "--id", "w")
    shop.decide()
    shown = shop.json("history", "w")
    assert [event["kind"] for event in shown["events"]] == ["RunStarted", "RunCompleted"]
    assert shop.json("history", "w", "--descending", "--limit", "1")["next_cursor"] == 2
    assert "RunCompleted" in shop.text("history", "w", "--after", "1")
    assert "RunStarted" not in shop.text("history", "w", "--after", "1")
    assert "--after 1" in shop.text("history", "w", "--limit", "1")
    assert "after" in shop.error("history", "w", "--after", "-1", code=64)


HOSTILE = ["[red]markup[/red]", 'it\'s "quoted"/☃', "[/]", "[link=http://x]y", "‮gnp", "a:smile:b"]


@pytest.mark.parametrize("id_", HOSTILE)
def test_ids_and_payloads_are_shown_as_text(shop: Shop, id_: str):
    shop.json("start", "client.anything", "--input", json.dumps(f"\x1b[31m{id_}\x07"), "--id", id_)
    shop.decide()
    outputs = [
        shop.invoke(*args, color=True).output for args in (("list",), ("show", id_), ("history", id_), ("result", id_))
    ]
    for output in outputs:
        assert "\x1b[31m" not in output
        assert "\x07" not in output
        assert "‮" not in output
    visible = id_.replace("‮", "\\u202e")
    assert all(visible in output.replace("\\\\", "\\") for output in outputs[:2])
    assert shop.json("list")["items"][0]["id"] == id_
    assert shop.json("result", id_)["result"] == f"\x1b[31m{id_}\x07"


def test_every_command_has_json_and_help(shop: Shop):
    from orchestrator.cli.group import COMMANDS

    overview = shop.text("--help")
    for name, (_, line) in COMMANDS.items():
        help_text = shop.text(name, "--help")
        assert "--json" in help_text
        assert name in overview
        assert line.split()[0] in help_text


@pytest.mark.parametrize(
    ("args", "message"), [(("strat",), "start"), (("nonsense",), "nonsense"), (("--wrong",), "--wrong")]
)
def test_a37_wrong_usage_is_sixty_four(shop: Shop, args: tuple[str, ...], message: str):
    assert message in shop.error(*args, code=64)
    assert shop.invoke().exit_code == 64


def test_a_bug_is_not_hidden(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(shop.durable, "list", broken)
    assert isinstance(shop.invoke("list").exception, ZeroDivisionError)
