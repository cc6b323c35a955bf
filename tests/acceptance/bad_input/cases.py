"""Values that public calls refuse, and what a refusal looks like."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import func, select

from orchestrator.errors import InvalidArgument, OrchestratorError
from orchestrator.store.database import Database
from orchestrator.store.schema import metadata


class Hostile:
    """An object of somebody else's that raises whatever is asked of it."""

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name) if name.startswith("__") else RuntimeError("no attribute")


HUGE = 10**5000
"""More digits than Python converts to text."""

NOT_TEXT: dict[str, Any] = {
    "a number": 5,
    "a bool": True,
    "bytes": b"order-1",
    "a list": ["order-1"],
    "a huge number": HUGE,
    "a hostile object": Hostile(),
}

NO_LABEL: dict[str, Any] = {
    **NOT_TEXT,
    "empty": "",
    "blank": " ",
    "a blank before": " order-1",
    "a blank behind": "order-1 ",
    "a no-break space behind": "order-1\xa0",
    "a line break behind": "order-1\n",
    "a line break inside": "order\n1",
    "NUL": "order\x00-1",
    "an escape sequence": "order\x1b[31m",
    "a control character of Latin-1": "order\x85-1",
    "a lone surrogate": "order\ud800",
    "half of a pair": "\udcff",
    "256 bytes": "x" * 256,
    "128 characters of 256 bytes": "é" * 128,
}
"""No id and no name: every call that takes one refuses these."""

NO_REASON: dict[str, Any] = {
    **NOT_TEXT,
    "None": None,
    "NUL": "no longer\x00wanted",
    "an escape sequence": "no longer \x1b[31m wanted",
    "a lone surrogate": "no longer \ud800",
    "ten thousand and one bytes": "x" * 10_001,
}

NOT_A_DURATION: dict[str, Any] = {
    "text": "5",
    "a bool": True,
    "NaN": math.nan,
    "infinity": math.inf,
    "a decimal": Decimal(5),
    "a list": [5],
    "a date": date(2030, 1, 1),
    "timedelta.max": timedelta.max,
    "more than 100 years": 100 * 366 * 86400,
    "a huge number": HUGE,
    "the largest float": 1e308,
    "a hostile object": Hostile(),
}
"""No duration, negative or not; neither is None, where that does not mean "no limit"."""

NEGATIVE: dict[str, Any] = {
    "minus one": -1,
    "a microsecond below zero": timedelta(microseconds=-1),
    "less than a microsecond below zero": -1e-9,
    "timedelta.min": timedelta.min,
    "minus infinity": -math.inf,
    "a huge negative number": -HUGE,
}

ZERO: dict[str, Any] = {"zero": 0, "no time": timedelta(0)}

NOT_AN_INSTANT: dict[str, Any] = {
    "None": None,
    "a number": 1_900_000_000,
    "text": "2030-01-01T00:00:00Z",
    "a date": date(2030, 1, 1),
    "without a time zone": datetime(2030, 1, 1),
    "after the year 9999": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))),
    "before the year 1": datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
}

NOT_AN_INT: dict[str, Any] = {
    "a bool": True,
    "a float": 1.0,
    "text": "1",
    "NaN": math.nan,
    "a decimal": Decimal(1),
    "a list": [1],
    "a hostile object": Hostile(),
}

NOT_A_FLAG: dict[str, Any] = {"text": "false", "a number": 1, "None": None, "a hostile object": Hostile()}

NOT_A_TYPE: dict[str, Any] = {"a number": 5, "its name": "str", "a lone surrogate": "\ud800", "a list": [str]}


def _nested(levels: int) -> list[Any]:
    return [_nested(levels - 1)] if levels else []


NOT_STORABLE: dict[str, Any] = {
    "an object": object(),
    "a hostile object": Hostile(),
    "a function": len,
    "a generator": (letter for letter in "ab"),
    "NaN": math.nan,
    "infinity in a list": [1, math.inf],
    "a decimal that is no number": Decimal("NaN"),
    "a lone surrogate": "a\ud800",
    "a lone surrogate as a key": {"\ud800": 1},
    "nested too deeply": _nested(150),
    "over the limit": "x" * 2_100_000,
}
"""Values that can't be kept as JSON."""

ADVICE = re.compile(
    r"\b(give|must|at most|at least|accepted|needed|use|write|remove|pass|clean|define|decorate|leave|import|keep|take|"
    r"takes|raise|lower|return|await|start from|make it|annotate|declare|should|say)\b",
    re.IGNORECASE,
)
"""What a message says to do."""


def refuse(argument: str, call: Callable[[], Any]) -> InvalidArgument:
    """Checks that a call refuses an argument by name, in words that can be printed, and says what to do."""
    with pytest.raises(InvalidArgument) as caught:
        call()
    check_refusal(caught.value, argument)
    return caught.value


def check_refusal(error: InvalidArgument, argument: str, name: str = "") -> None:
    """Checks the words of a refusal; ``name`` tells which case it is of."""
    assert isinstance(error, OrchestratorError)
    assert isinstance(error, ValueError)
    assert re.split(r"[.\[{]", error.argument)[0] == argument, (name, str(error))
    assert str(error) == f"{error.argument}: {error.reason}"
    assert ADVICE.search(error.reason), f"it does not say what to do: {error}"
    assert str(error).isprintable(), (name, "it can't be printed as it is")
    assert len(str(error)) < 600, name


@dataclass(frozen=True)
class Case:
    """One call and the argument it refuses."""

    argument: str
    call: Callable[[Any], Any]


def variants(
    argument: str, call: Callable[[Any, Any], Any], *tables: Mapping[str, Any], without: Iterable[str] = ()
) -> Iterator[tuple[str, Case]]:
    """Yields a case, with its name, for every value of the tables, given to one argument of a call.

    Args:
        argument: The argument.
        call: The call: takes what is called, and the value.
        tables: The values.
        without: Names of values that are fine here.
    """
    for table in tables:
        for name, value in table.items():
            if name not in without:
                yield f"{argument}: {name}", Case(argument, _bound(call, value))


def _bound(call: Callable[[Any, Any], Any], value: Any) -> Callable[[Any], Any]:
    return lambda subject: call(subject, value)


def params(cases: Mapping[str, Iterable[tuple[str, Case]]]) -> list[Any]:
    """Returns the cases of several calls as pytest parameters with readable names."""
    return [pytest.param(case, id=f"{call}-{name}") for call, found in cases.items() for name, case in found]


def stored(db: Database) -> dict[str, int]:
    """Returns how many rows each table has, but for those that workers and the sweep keep for themselves."""
    own = {"orchestrator_workers", "orchestrator_sweep", "orchestrator_queues"}
    tables = [table for table in metadata.sorted_tables if table.name not in own]
    with db.read() as conn:
        counts = {table.name: conn.execute(select(func.count()).select_from(table)).scalar_one() for table in tables}
    assert {"orchestrator_runs", "orchestrator_history", "orchestrator_inbox", "orchestrator_activities"} <= set(counts)
    return counts
