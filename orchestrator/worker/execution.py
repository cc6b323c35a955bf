"""Running one claimed attempt: arguments in, function, outcome out. Knows no Celery; the test kit uses it too.

An outcome that can't be stored now is not lost: it is tried again for a while by the caller, then by a
thread of its own for as long as the process lives. Should the process die before, the attempt is lost with
it and runs again (at least once, recorded once).
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from orchestrator.activity import loop
from orchestrator.activity.calls import decode_call
from orchestrator.activity.context import ActivityInfo, RunningActivity, entered, heartbeat_interval
from orchestrator.activity.definition import ActivityDefinition
from orchestrator.engine import attempts
from orchestrator.engine.attempts import Claim, ClaimUnknown
from orchestrator.engine.core import Engine
from orchestrator.errors import PayloadError, Unavailable
from orchestrator.model.failures import Failure, failure_from_exception
from orchestrator.types import to_datetime

logger = logging.getLogger(__name__)

STORE_SECONDS = 60.0
"""How long an outcome that can't be stored is held by the attempt's own slot: well below what brokers tolerate."""
RETRY_SECONDS = 1.0
"""Pause between two tries to store an outcome."""


def attempt_of(engine: Engine, claim: Claim, task_id: str) -> RunningActivity:
    """Returns the running attempt that activity code may ask."""
    to_close = claim.options.get("schedule_to_close_timeout")
    limit = claim.options.get("start_to_close_timeout")
    beat = claim.heartbeat_timeout_us
    info = ActivityInfo(
        activity=claim.name,
        task_id=task_id,
        idempotency_key=claim.idempotency_key,
        attempt=claim.attempt,
        workflow_id=claim.workflow_id,
        run_id=claim.run_id,
        workflow_type=claim.workflow_type,
        namespace=claim.namespace,
        number=claim.number,
        scheduled_at=to_datetime(claim.scheduled_at),
        started_at=to_datetime(claim.started_at),
        start_to_close_deadline=None if limit is None else to_datetime(claim.started_at + limit),
        schedule_to_close_deadline=None if to_close is None else to_datetime(claim.scheduled_at + to_close),
        heartbeat_timeout=None if beat is None else to_datetime(beat) - to_datetime(0),
        _details=claim.heartbeat_details,
        _converter=engine.converter,
    )
    return RunningActivity(
        info,
        lambda details: attempts.heartbeat(engine, claim, details),
        interval=heartbeat_interval(beat),
        monotonic=engine.monotonic,
    )


def arguments(engine: Engine, claim: Claim, definition: ActivityDefinition) -> tuple[list[Any], dict[str, Any]]:
    """Returns the attempt's arguments.

    Raises:
        PayloadError: They can't be read.
    """
    return decode_call(engine.converter, definition, claim.input)


def run_attempt(engine: Engine, claim: Claim, definition: ActivityDefinition, *, task_id: str = "") -> bool:
    """Runs a claimed attempt in this thread and records its outcome.

    Args:
        engine: The engine.
        claim: The claimed attempt.
        definition: What to run; its function may be async.
        task_id: What ``activity.info().task_id`` shows.

    Returns:
        False when the attempt was somebody else's at its end, so that nothing was recorded.
    """
    attempt = attempt_of(engine, claim, task_id)
    assert definition.function is not None
    try:
        args, kwargs = arguments(engine, claim, definition)
        with entered(attempt):
            result = definition.function(*args, **kwargs)
            if inspect.iscoroutine(result):
                result = loop.run(result)
    except Exception as error:  # noqa: BLE001 - whatever the body raises is its outcome
        return record_failure(engine, claim, attempt, error)
    return record_result(engine, claim, attempt, definition, result)


def record_result(
    engine: Engine, claim: Claim, attempt: RunningActivity, definition: ActivityDefinition, result: Any
) -> bool:
    """Records what the body returned; a result that can't be stored fails the activity for good."""
    hint = Any if definition.legacy else definition.signature.return_hint
    try:
        data = engine.converter.encode(result, hint, argument="result").data
    except PayloadError as error:
        return record_failure(engine, claim, attempt, error, non_retryable=True)
    return _stored(engine, claim, lambda: attempts.complete(engine, claim, data))


def record_failure(
    engine: Engine, claim: Claim, attempt: RunningActivity, error: BaseException, *, non_retryable: bool = False
) -> bool:
    """Records what the body raised, after the heartbeat details that were kept back."""
    failure = failure_from_exception(error)
    if non_retryable:
        failure = _for_good(failure)

    def store() -> bool:
        attempt.flush()
        return attempts.fail(engine, claim, failure)

    return _stored(engine, claim, store)


def record_postponed(engine: Engine, claim: Claim, attempt: RunningActivity, delay_us: int, *, retried: bool) -> bool:
    """Records that Celery runs the body again: by a retry, or since the message comes back."""

    def store() -> bool:
        attempt.flush()
        return attempts.postpone(engine, claim, delay_us, retried=retried)

    return _stored(engine, claim, store)


def _for_good(failure: Failure) -> Failure:
    return replace(failure, non_retryable=True)


def _stored(engine: Engine, claim: Claim, store: Callable[[], bool]) -> bool:
    until = engine.monotonic() + STORE_SECONDS
    while True:
        try:
            recorded = store()
        except Unavailable:
            if engine.monotonic() >= until:
                _keep_trying(engine, claim, store)
                return True
            logger.warning("The outcome of %s can't be stored yet; trying again.", _what(claim), exc_info=True)
            engine.sleep(RETRY_SECONDS)
        else:
            _tell(claim, recorded=recorded)
            return recorded


def _keep_trying(engine: Engine, claim: Claim, store: Callable[[], bool]) -> None:
    logger.error("The outcome of %s can't be stored; a thread goes on trying.", _what(claim))
    _on_a_thread(engine, lambda: _tell(claim, recorded=store()), f"The outcome of {_what(claim)} was refused.")


def release_later(engine: Engine, doubt: ClaimUnknown) -> None:
    """Gives an attempt back, on a thread, once the database tells whether it was claimed."""
    what = f"attempt {doubt.ticket.attempt} of activity {doubt.ticket.number} in run {doubt.ticket.run_id}"
    _on_a_thread(engine, lambda: attempts.release(engine, doubt), f"The claim of {what} can't be given back.")


def _on_a_thread(engine: Engine, store: Callable[[], object], complaint: str) -> None:
    def work() -> None:
        while True:
            engine.sleep(RETRY_SECONDS)
            try:
                store()
            except Unavailable:
                continue
            except Exception:
                logger.exception(complaint)
            return

    threading.Thread(target=work, name="orchestrator-outcome", daemon=True).start()


def _tell(claim: Claim, *, recorded: bool) -> None:
    if not recorded:
        logger.warning(
            "The outcome of %s came too late: another attempt has taken over, or the workflow has ended.", _what(claim)
        )


def _what(claim: Claim) -> str:
    return f"activity {claim.name!r} (number {claim.number}, attempt {claim.attempt}) of workflow {claim.workflow_id!r}"
