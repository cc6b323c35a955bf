"""Checking what a caller gives before anything is read or stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.model.names import check_choice, check_duration, check_id, check_name
from orchestrator.model.payloads import CallSignature, Payload
from orchestrator.types import SECOND

if TYPE_CHECKING:
    from orchestrator.client.waiting import OnBlocked
    from orchestrator.engine.core import Engine

REASON_LIMIT = 10_000
"""Longest reason of a cancellation or termination, in UTF-8 bytes."""


def check_timeout(value: object) -> float | None:
    """Returns a time-out in seconds, or None for no limit.

    Raises:
        InvalidArgument: Not a timedelta or a number of seconds, negative, or NaN.
    """
    return None if value is None else check_duration(value, "timeout") / SECOND


def check_on_blocked(value: object) -> OnBlocked:
    """Returns the choice.

    Raises:
        InvalidArgument: Neither ``"raise"`` nor ``"wait"``.
    """
    choices: tuple[OnBlocked, OnBlocked] = ("raise", "wait")
    return check_choice(value, "on_blocked", choices)


def check_optional_id(value: object, argument: str) -> str | None:
    """Returns an id, or None.

    Raises:
        InvalidArgument: As :func:`~orchestrator.model.names.check_id`.
    """
    return None if value is None else check_id(value, argument)


def check_optional_name(value: object, argument: str) -> str | None:
    """Returns a name, or None.

    Raises:
        InvalidArgument: As :func:`~orchestrator.model.names.check_name`.
    """
    return None if value is None else check_name(value, argument)


def encode(
    engine: Engine, values: Sequence[object], signature: CallSignature | None, argument: str = "arguments"
) -> Payload:
    """Returns positional arguments as one payload, checked against the signature where it is known.

    Args:
        engine: The engine.
        values: The arguments.
        signature: What the receiving code takes; None when that is not known here.
        argument: What they are, for messages.

    Raises:
        InvalidArgument: Too many or too few arguments, or one of the wrong type; the parameter is named.
    """
    slots, _ = (signature or CallSignature.untyped()).bind(values, {})
    names = [slot.label for slot in slots]
    if signature is None:
        names = [f"{argument}[{index}]" for index in range(len(values))]
    return engine.converter.encode_args(values, [slot.hint for slot in slots], names=names)
