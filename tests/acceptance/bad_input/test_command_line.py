"""Every subcommand, given what it refuses: exit code 64 for wrong usage, 1 for what is refused, nothing stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.bin.base import CLIContext
from click.testing import CliRunner, Result

from orchestrator import Orchestrator
from orchestrator.cli import workflow
from orchestrator.cli.group import COMMANDS
from orchestrator.engine.decision import decide
from tests.acceptance.bad_input import cases, flows
from tests.acceptance.bad_input.cases import stored

USAGE, REFUSED = 64, 1


class Prompt:
    """A prompt in front of an app on SQLite, with two open runs and a closed one."""

    def __init__(self, database_url: str, **settings: Any) -> None:
        self.app = Celery("shop", broker="memory://", set_as_current=False)
        self.app.conf.update({"orchestrator_database_url": database_url, **settings})
        self.durable = Orchestrator(self.app)

    def fill(self) -> None:
        """Starts the runs."""
        self.durable.start(flows.waiter, id="waiter")
        self.durable.start(flows.Approval.run, 1, id="approval")
        self.durable.start(flows.echo, "a", id="closed")
        for run in self.durable.list().items:
            decide(self.durable.engine(), run.run_id)

    def invoke(self, *args: str) -> Result:
        """Runs ``celery -A shop workflow …``."""
        context = CLIContext(app=self.app, no_color=True, workdir=None)
        return CliRunner().invoke(workflow, args, obj=context, prog_name="celery workflow")


@pytest.fixture(scope="module")
def prompt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prompt]:
    made = Prompt(f"sqlite:///{tmp_path_factory.mktemp('prompt') / 'shop.db'}")
    made.durable.engine()
    made.fill()
    yield made
    made.durable.close()


TYPED = {name: value for name, value in cases.NO_LABEL.items() if isinstance(value, str)}
"""What can be typed; a byte that is no UTF-8 arrives as half of a pair."""
REASONS = {name: value for name, value in cases.NO_REASON.items() if isinstance(value, str)}
NO_COUNT = {"a word": "many", "a half": "1.5", "empty": "", "negative": "-1", "more than a database counts": "9" * 30}
NO_SECONDS = {
    "a word": "soon",
    "empty": "",
    "negative": "-1",
    "NaN": "nan",
    "infinity": "inf",
    "too long": "1e12",
    "beyond": "1e400",
}
NO_JSON = {
    "a word": "soon",
    "empty": "",
    "half": "{",
    "NaN": "NaN",
    "infinity in a list": "[Infinity]",
    "a lone surrogate": '"\\ud800"',
}

# Of each option and argument: what stands around it, the place of the value marked by an ellipsis, and the values.
OPTIONS: dict[str, list[tuple[tuple[Any, ...], dict[str, str]]]] = {
    "start": [
        (("--", ...), {**TYPED, "unknown": "bad.eccho"}),
        (("bad.waiter", "--id", ...), TYPED),
        (("bad.waiter", "--queue", ...), TYPED),
        (("bad.waiter", "--request-id", ...), TYPED),
        (("bad.waiter", "--id-reuse-policy", ...), {"unknown": "reject", "empty": ""}),
        (("bad.waiter", "--memo", ...), NO_JSON),
        (("bad.anything", "--input", ...), NO_JSON),
        (("bad.waiter", "--wait", "--timeout", ...), NO_SECONDS),
        (("bad.waiter", "--timeout", ...), NO_SECONDS),
        (("bad.echo", "a", ...), {"a word for a number": "many", "a half for a number": "1.5", "true for a number": "true"}),
        (("bad.echo", "a", "2", ...), {"one too many": "x"}),
        (("bad.echo", "a", "--input", ...), {"both forms": "1"}),
        (("bad.echo", ...), {"a lone surrogate": "\ud800"}),
        (("bad.order", ...), {"text for a dataclass": "42", "a field of another type": '{"id": "1", "cents": "many"}'}),
    ],
    "list": [
        (("--status", ...), {"unknown": "DONE", "in lower case": "running", "empty": ""}),
        (("--attention", ...), {"unknown": "stuck", "empty": ""}),
        (("--type", ...), TYPED),
        (("--id", ...), TYPED),
        (("--limit", ...), {**NO_COUNT, "zero": "0", "too many": "1001"}),
        (("--cursor", ...), {"text": "page 2", "empty": "", "a lone surrogate": "\udcff"}),
    ],
    "show": [(("--", ...), TYPED), (("waiter", "--run-id", ...), TYPED)],
    "history": [
        (("--", ...), TYPED),
        (("closed", "--run-id", ...), TYPED),
        (("closed", "--after", ...), NO_COUNT),
        (("closed", "--limit", ...), {**NO_COUNT, "zero": "0", "too many": "1001"}),
    ],
    "signal": [
        (("--", ..., "address", "Main St"), TYPED),
        (("--", "waiter", ..., "Main St"), TYPED),
        (("waiter", "address", "Main St", "--signal-id", ...), TYPED),
        (("waiter", "address", "Main St", "--run-id", ...), TYPED),
        (("waiter", "address", "--input", ...), {**NO_JSON, "a number for text": "5"}),
        (("approval", "approve", "ann", ...), {"a word for a number": "many"}),
        (("waiter", "address", "Main St", ...), {"one too many": "x"}),
    ],
    "query": [
        (("--", ..., "pending"), TYPED),
        (("--", "approval", ...), TYPED),
        (("approval", "pending", ...), {"a word for a number": "many"}),
        (("approval", "pending", "--input", ...), NO_JSON),
        (("approval", "pending", "1", ...), {"one too many": "2"}),
    ],
    "cancel": [(("--", ...), TYPED), (("waiter", "--run-id", ...), TYPED), (("waiter", "--reason", ...), REASONS)],
    "terminate": [(("--", ...), TYPED), (("waiter", "--run-id", ...), TYPED), (("waiter", "--reason", ...), REASONS)],
    "result": [(("--", ...), TYPED), (("closed", "--run-id", ...), TYPED), (("closed", "--timeout", ...), NO_SECONDS)],
    "migrate": [((...,), {"an argument": "now"})],
    "doctor": [((...,), {"an argument": "now"})],
    "dev": [(("--concurrency", ...), {"a word": "many", "a half": "1.5", "empty": "", "negative": "-1", "zero": "0"}), ((...,), {"an argument": "now"})],
}  # fmt: skip

WRONG = [
    pytest.param((command, *(value if part is ... else part for part in around)), id=f"{command} {' '.join(map(str, around[:-1]))} {name}")
    for command, found in OPTIONS.items()
    for around, values in found
    for name, value in values.items()
]  # fmt: skip


def test_every_command_is_tried() -> None:
    assert set(OPTIONS) == set(COMMANDS)


@pytest.mark.parametrize("args", WRONG)
def test_wrong_usage_is_sixty_four_and_stores_nothing(prompt: Prompt, args: tuple[str, ...]) -> None:
    before = stored(prompt.durable.engine().db)
    result = prompt.invoke(*args)
    assert result.exit_code == USAGE, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert "Error: " in result.stderr
    assert result.stderr.replace("\n", "").isprintable()
    assert stored(prompt.durable.engine().db) == before


REFUSALS: dict[tuple[str, ...], str] = {
    **{(command, "nobody"): "'nobody'" for command in ("show", "history", "cancel", "terminate", "result")},
    ("signal", "nobody", "address", "Main St"): "'nobody'",
    ("query", "nobody", "pending"): "'nobody'",
    ("show", "waiter", "--run-id", "no-run"): "run no-run",
    ("signal", "waiter", "adress", "Main St"): "'adress'",
    ("query", "approval", "missing"): "'missing'",
    ("cancel", "closed"): "has ended",
    ("terminate", "closed"): "has ended",
    ("signal", "closed", "go"): "has ended",
    ("start", "bad.echo", "b", "--id", "closed"): "is taken",
    ("start", "bad.echo", "a", "--id", "waiter"): "is taken",
    ("start", "bad.echo", "a", "--id", "closed", "--id-reuse-policy", "reject_duplicate"): "exists already",
    ("result", "waiter", "--timeout", "0"): "after 0 s",
}


@pytest.mark.parametrize("args", REFUSALS, ids=" ".join)
def test_what_is_refused_is_one_and_stores_nothing(prompt: Prompt, args: tuple[str, ...]) -> None:
    before = stored(prompt.durable.engine().db)
    for form in ((), ("--json",)):
        result = prompt.invoke(*args, *form)
        assert result.exit_code == REFUSED, (result.output, result.exception)
        assert REFUSALS[args] in result.stderr
    assert json.loads(result.stderr)["error"]["exit_code"] == REFUSED
    assert stored(prompt.durable.engine().db) == before


@pytest.mark.parametrize(
    "args", [(), ("strat",), ("--wrong",), ("start",), ("signal", "waiter"), ("show", "a", "b"), ("list", "--limit")]
)
def test_a_line_that_makes_no_command_is_sixty_four(prompt: Prompt, args: tuple[str, ...]) -> None:
    assert prompt.invoke(*args).exit_code == USAGE


@pytest.mark.parametrize(
    "command", [("list",), ("start", "bad.waiter"), ("show", "waiter"), ("migrate",)], ids=" ".join
)
def test_a_wrong_setting_is_sixty_four_and_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    wrong = Prompt(f"sqlite:///{tmp_path / 'shop.db'}", orchestrator_payload_limit="many")
    result = wrong.invoke(*command)
    assert result.exit_code == USAGE
    assert "orchestrator_payload_limit" in result.stderr
    assert not (tmp_path / "shop.db").exists()


def test_a_number_of_more_digits_than_python_converts_is_shown_whole(prompt: Prompt) -> None:
    prompt.durable.start(flows.anything, cases.HUGE, id="huge")
    decide(prompt.durable.engine(), prompt.durable.get_handle("huge").describe().run_id)
    digits = "1" + "0" * 5000
    for args in (("result", "huge"), ("show", "huge", "--json"), ("history", "huge", "--json")):
        result = prompt.invoke(*args)
        assert result.exit_code == 0, result.exception
        assert digits in result.stdout
    assert prompt.invoke("show", "huge").exit_code == 0
