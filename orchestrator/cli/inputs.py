"""Arguments typed at a prompt, turned into the values that workflow code takes.

``ARGS`` are for people: text stays text where the parameter is annotated ``str``, is read as JSON elsewhere,
and is text again where it is not JSON. ``--input`` is for programs: always JSON, one per argument.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from orchestrator.cli.errors import Misused


def read_inputs(words: Sequence[str], inputs: Sequence[str], hints: Sequence[Any] | None) -> list[Any]:
    """Returns the positional arguments of a start, a signal or a query.

    Args:
        words: What was typed as plain arguments.
        inputs: What was given with ``--input``.
        hints: Type hints of the parameters, None when they are not known here.

    Raises:
        Misused: Both forms are mixed, or an ``--input`` is not JSON.
    """
    if words and inputs:
        raise Misused("Give the arguments either as plain words or with --input, not both.")
    if inputs:
        return [_json(text, f"--input number {index}") for index, text in enumerate(inputs, 1)]
    known = list(hints or ())
    return [_word(word, known[index] if index < len(known) else None) for index, word in enumerate(words)]


def read_json(text: str | None, option: str) -> Any:
    """Returns the value of an option that takes JSON; None when it was not given.

    Raises:
        Misused: It is not JSON.
    """
    return None if text is None else _json(text, option)


def _word(word: str, hint: Any) -> Any:
    if hint is str:
        return word
    try:
        return json.loads(word)
    except ValueError:
        return word


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Misused(f"{where} is not JSON: {error}. Text needs its quotes: --input '\"order-42\"'.") from None
