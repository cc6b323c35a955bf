"""Arguments typed at a prompt, turned into the values that workflow code takes.

``ARGS`` are for people: text stays text where the parameter is annotated ``str``, is read as JSON elsewhere,
and is text again where it is not JSON. ``--input`` is for programs: always JSON, one per argument.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.cli.errors import Misused

if TYPE_CHECKING:
    from orchestrator.client import WorkflowClient
    from orchestrator.model.payloads import CallSignature


def read_inputs(
    client: WorkflowClient, words: Sequence[str], inputs: Sequence[str], signature: CallSignature | None
) -> Sequence[Any]:
    """Returns the positional arguments of a start, a signal or a query, with the types it declares.

    Args:
        client: Converts values.
        words: What was typed as plain arguments.
        inputs: What was given with ``--input``.
        signature: What is called; None when that is not known here.

    Raises:
        Misused: Both forms are mixed, or an ``--input`` is not JSON.
        InvalidArgument: There are too many or too few, or one does not fit; the parameter is named.
    """
    if words and inputs:
        raise Misused("Give the arguments either as plain words or with --input, not both.")
    hints = [] if signature is None else [parameter.hint for parameter in signature.positional]
    if inputs:
        values = [_json(text, f"--input number {index}") for index, text in enumerate(inputs, 1)]
    else:
        values = [_word(word, hints[index] if index < len(hints) else None) for index, word in enumerate(words)]
    return values if signature is None else client.typed_values(signature, values)


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
