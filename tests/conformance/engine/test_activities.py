"""PARITY A13, A14, A27, A28, F11–F13: activities, their attempts, time-outs and retries."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.engine import attempts
from orchestrator.engine.attempts import Refusal, WorkerIdentity
from orchestrator.errors import ActivityError, ActivityTimeout, ApplicationError, WorkerLost
from orchestrator.model.failures import failure_from_exception
from orchestrator.model.options import RetryPolicy
from orchestrator.model.records import ActivityState, RunStatus
from tests.conformance.engine.world import ME, World

SECOND = timedelta(seconds=1)
OTHER = WorkerIdentity(worker_id="worker-2", pid=7, pid_started=2)


class Declined(Exception):
    pass


@workflow.defn(name="parity.call")
async def call(options: dict[str, Any]) -> object:
    policy = options.pop("retry", None)
    durations = {key: timedelta(seconds=value) for key, value in options.items()}
    try:
        return await workflow.execute_activity(
            "step", args=["x"], retry_policy=None if policy is None else _policy(policy), **durations
        )
    except ActivityError as error:
        cause = type(error.cause).__name__
        return [error.activity, error.attempt, error.type, error.message, cause, list(error.details)]


def _policy(values: dict[str, Any]) -> RetryPolicy:
    values = {"initial_interval": 1, **values, "jitter": 0.0}
    values["initial_interval"] = timedelta(seconds=values["initial_interval"])
    return RetryPolicy(**values)


def failing(times: int, error: Exception | None = None) -> Any:
    left = [times]

    def step(value: str) -> str:
        if left[0] > 0:
            left[0] -= 1
            raise error or ValueError("not yet")
        return f"{value} done"

    return step


def test_a13_an_activity_is_scheduled_with_its_defaults(world: World) -> None:
    world.start("parity.call", {})
    world.decisions()
    row = world.activity(1)
    assert (row.name, row.queue, row.attempt, row.state) == ("step", "celery", 1, ActivityState.SCHEDULED)
    assert row.options["retry"]["attempts"] == 10
    assert row.options["start_to_close_timeout"] == 300_000_000
    message = world.next_attempt()
    assert (message.number, message.attempt, message.published_at) == (1, 1, row.published_at)


def test_a14_a_retry_waits_for_its_delay_and_starts_a_new_attempt(world: World) -> None:
    world.functions["step"] = failing(2)
    world.start("parity.call", {"retry": {"maximum_attempts": 3}})
    world.work()
    assert world.activity(1).attempt == 2
    world.tick(timedelta(milliseconds=900))
    world.work()
    assert len(world.calls) == 1, "the retry came before its delay passed"
    world.tick(SECOND)
    world.work()
    world.tick(2 * SECOND)
    world.work()
    assert world.result() == "x done"
    assert [notice for notice in world.observer.names() if notice == "activity_failed"] == ["activity_failed"] * 2
    assert world.kinds() == ["RunStarted", "ActivityScheduled", "ActivityCompleted", "RunCompleted"]


def test_a28_a_final_failure_is_an_event_the_workflow_can_catch(world: World) -> None:
    world.functions["step"] = failing(9, ApplicationError("no money", {"cents": 1}, type="Declined"))
    world.start("parity.call", {"retry": {"maximum_attempts": 1}})
    world.work()
    assert world.result() == ["step", 1, "Declined", "no money", "ApplicationError", [{"cents": 1}]]
    assert world.activity(1).state is ActivityState.FAILED


@pytest.mark.parametrize(
    ("error", "policy"),
    [
        (ApplicationError("x", non_retryable=True), {}),
        (Declined("x"), {"non_retryable_error_types": ["Declined"]}),
        (ValueError("x"), {"non_retryable_error_types": ["builtins.ValueError"]}),
    ],
)
def test_f12_a_non_retryable_failure_is_not_tried_again(world: World, error: Exception, policy: dict[str, Any]) -> None:
    world.functions["step"] = failing(9, error)
    world.start("parity.call", {"retry": policy})
    world.work()
    assert len(world.calls) == 1
    assert world.result()[3] == "x"


def test_next_retry_delay_replaces_the_policys_delay(world: World) -> None:
    world.functions["step"] = failing(1, ApplicationError("later", next_retry_delay=timedelta(seconds=50)))
    world.start("parity.call", {})
    world.work()
    world.tick(timedelta(seconds=49))
    world.work()
    assert len(world.calls) == 1
    world.tick(timedelta(seconds=2))
    world.work()
    assert world.result() == "x done"


@pytest.mark.parametrize(
    ("option", "claimed", "waits", "final"),
    [
        ("schedule_to_start_timeout", False, 2, True),
        ("schedule_to_close_timeout", False, 2, True),
        ("schedule_to_close_timeout", True, 2, True),
        ("start_to_close_timeout", True, 2, False),
        ("heartbeat_timeout", True, 2, False),
    ],
)
def test_a28_each_time_out_ends_what_it_bounds(
    world: World, option: str, claimed: bool, waits: int, final: bool
) -> None:
    world.start("parity.call", {option: waits, "retry": {"maximum_attempts": 2}})
    world.decisions()
    claim = world.claimed() if claimed else None
    for _ in range(4):
        world.tick(SECOND)
    if not final:
        assert world.activity(1).attempt == 2, "a time-out of an attempt leads to the next attempt"
        assert claim is not None
        assert attempts.complete(world.engine, claim, world.encode("old")) is False
        world.claimed()
        for _ in range(4):
            world.tick(SECOND)
    world.decisions()
    name, attempt, kind, message, cause, details = world.result()
    assert (kind, cause) == ("ActivityTimeout", ActivityTimeout.__name__)
    assert details == [option.removesuffix("_timeout")]


def test_a_late_claimed_attempt_beyond_schedule_to_close_gets_no_retry(world: World) -> None:
    world.functions["step"] = failing(9)
    world.start("parity.call", {"schedule_to_close_timeout": 3, "retry": {"initial_interval": 5}})
    world.work()
    assert world.result()[2] == "ValueError", "the error itself is told when no attempt fits before the deadline"


def test_a27_parallel_results_come_in_call_order_whatever_finished_first(world: World) -> None:
    world.start("parity.fan_out", 3)
    claims = [world.claimed() for _ in range(3)]
    for claim in reversed(claims):
        attempts.complete(world.engine, claim, world.encode(claim.number))
    world.work()
    assert world.result() == [1, 2, 3]


@workflow.defn(name="parity.fan_out")
async def fan_out(count: int) -> list[object]:
    return list(await asyncio.gather(*(workflow.execute_activity("step", args=[i]) for i in range(count))))


def test_a27_the_first_error_is_raised_to_the_awaiting_code(world: World) -> None:
    world.start("parity.fan_out", 3)
    claims = [world.claimed() for _ in range(3)]
    error = failure_from_exception(ApplicationError("third", non_retryable=True))
    attempts.fail(world.engine, claims[2], error)
    world.work()
    assert world.status() is RunStatus.FAILED
    assert "third" in world.failure()


def test_f11_all_activities_of_a_batch_are_recorded_before_any_runs(world: World) -> None:
    world.start("parity.fan_out", 5)
    world.transport.pop()
    from orchestrator.engine.decision import decide

    decide(world.engine, world.run().run_id)
    assert [world.activity(n).state for n in range(1, 6)] == [ActivityState.SCHEDULED] * 5
    assert world.kinds() == ["RunStarted"] + ["ActivityScheduled"] * 5


def test_f13_a_token_is_new_per_attempt_and_a_stale_one_is_refused_and_told_so(world: World) -> None:
    world.start("parity.call", {"start_to_close_timeout": 1})
    old = world.claimed()
    for _ in range(4):
        world.tick(SECOND)
    new = world.claimed()
    assert new.token != old.token
    assert new.idempotency_key == old.idempotency_key
    assert attempts.heartbeat(world.engine, old, None).current is False
    assert attempts.complete(world.engine, old, world.encode("old")) is False
    assert attempts.complete(world.engine, new, world.encode("new")) is True
    assert attempts.complete(world.engine, new, world.encode("again")) is False
    world.decisions()
    assert world.result() == "new"
    assert world.kinds().count("ActivityCompleted") == 1


def test_f13_heartbeat_details_reach_the_next_attempt(world: World) -> None:
    world.start("parity.call", {"heartbeat_timeout": 2})
    claim = world.claimed()
    assert claim.heartbeat_details is None
    world.tick(SECOND)
    assert attempts.heartbeat(world.engine, claim, world.encode([7])).current
    world.tick(SECOND)
    assert world.activity(1).state is ActivityState.STARTED, "the heartbeat renewed the deadline"
    world.tick(2 * SECOND)
    world.tick(2 * SECOND)
    again = world.claimed()
    assert again.attempt == 2
    assert again.heartbeat_details is not None
    assert world.converter.decode(again.heartbeat_details) == [7]


def test_a_doubled_message_finds_nothing_to_run(world: World) -> None:
    world.start("parity.call", {})
    message = world.next_attempt()
    claim = world.claimed(message)
    doubled = world.claim(message)
    assert isinstance(doubled, Refusal)
    assert attempts.complete(world.engine, claim, world.encode(1))
    assert isinstance(world.claim(message), Refusal)


def test_celerys_own_retry_goes_on_with_the_same_attempt_and_a_new_token(world: World) -> None:
    world.start("parity.call", {})
    message = world.next_attempt()
    first = world.claimed(message)
    second = world.claim(message, retries=1)
    assert not isinstance(second, Refusal)
    assert (second.attempt, second.token != first.token) == (1, True)
    assert attempts.complete(world.engine, first, world.encode(1)) is False
    assert attempts.complete(world.engine, second, world.encode(2)) is True


def test_an_attempt_whose_worker_fell_silent_is_lost_and_tried_again(world: World) -> None:
    world.start("parity.call", {})
    world.alive(OTHER)
    first = world.claimed(worker=OTHER)
    for _ in range(40):
        world.tick(SECOND)
    row = world.activity(1)
    assert (row.attempt, row.losses, row.failures) == (2, 1, 0)
    assert attempts.complete(world.engine, first, world.encode(1)) is False


def test_an_attempt_whose_process_is_not_listed_is_lost_within_seconds(world: World) -> None:
    world.start("parity.call", {})
    child = WorkerIdentity(worker_id=ME.worker_id, pid=4711, pid_started=3)
    world.claimed(worker=child)
    for _ in range(6):
        world.tick(SECOND)
    assert world.activity(1).attempt == 2


def test_attempts_lost_in_a_row_end_in_worker_lost(world: World) -> None:
    world.start("parity.call", {})
    for pid in range(3):
        world.claimed(worker=WorkerIdentity(worker_id=ME.worker_id, pid=5000 + pid, pid_started=1))
        for _ in range(6):
            world.tick(SECOND)
    world.decisions()
    assert world.result()[2:5:2] == ["WorkerLost", WorkerLost.__name__]


def test_a_message_redelivered_while_its_claimant_lives_is_left_to_liveness(world: World) -> None:
    world.start("parity.call", {})
    message = world.next_attempt()
    claim = world.claimed(message)
    assert isinstance(world.claim(message, worker=OTHER, redelivered=True), Refusal)
    assert world.activity(1).attempt == 1
    assert attempts.complete(world.engine, claim, world.encode(1))


def test_a_message_redelivered_while_its_attempt_is_still_scheduled_claims_it_at_no_cost(world: World) -> None:
    world.start("parity.call", {})
    claim = world.claim(world.next_attempt(), redelivered=True)
    assert not isinstance(claim, Refusal)
    assert (world.activity(1).attempt, world.activity(1).losses) == (1, 0)


def test_what_a_worker_hands_back_counts_in_neither_counter(world: World) -> None:
    world.start("parity.call", {"retry": {"maximum_attempts": 1}})
    for _ in range(5):
        attempts.hand_back(world.engine, world.claimed())
    row = world.activity(1)
    assert (row.attempt, row.failures, row.losses, row.state) == (6, 0, 0, ActivityState.SCHEDULED)


def test_the_database_being_away_counts_nothing_against_running_attempts(world: World) -> None:
    world.start("parity.call", {"heartbeat_timeout": 5})
    claim = world.claimed()
    world.tick(SECOND)
    world.clock.advance_to(world.clock.now() + 200_000_000)  # nobody could tick or write
    world.tick(SECOND)
    assert world.activity(1).attempt == 1
    assert attempts.heartbeat(world.engine, claim, None).current


def test_an_unclaimed_message_is_sent_again_with_a_new_nonce(world: World) -> None:
    world.start("parity.call", {})
    lost = world.next_attempt()
    world.tick(timedelta(seconds=29))
    assert world.transport.pop() is None
    world.tick(2 * SECOND)
    again = world.next_attempt()
    assert (again.attempt, again.number) == (1, 1)
    assert again.nonce != lost.nonce
    world.claimed(again)
    assert isinstance(world.claim(lost), Refusal)


def test_a_backlog_is_never_amplified(world: World) -> None:
    world.start("parity.fan_out", 10)
    world.decisions()
    for _ in range(20):
        world.tick(timedelta(seconds=60))
    assert world.transport.depth("celery") == 10


def test_a_lost_message_is_sent_again_once_later_work_of_its_queue_was_claimed(world: World) -> None:
    world.start("parity.fan_out", 1, id="first")
    world.decisions()
    assert world.transport.pop() is not None  # lost
    world.tick(SECOND)
    world.start("parity.fan_out", 2, id="second")
    world.decisions()
    world.claimed(world.next_attempt())
    assert world.transport.depth("celery") == 1, "the queue is not empty"
    for _ in range(3):
        world.tick(timedelta(seconds=20))
    assert world.transport.depth("celery") == 2
