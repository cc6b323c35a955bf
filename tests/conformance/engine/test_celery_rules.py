"""What Celery itself does to an attempt: retries, messages that come back, processes its worker saw dying."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from orchestrator import workflow
from orchestrator.engine import attempts
from orchestrator.engine.attempts import Claim, Refusal, Ticket
from orchestrator.model.failures import Failure, FailureKind
from orchestrator.model.records import ActivityRecord, ActivityState, RunStatus
from orchestrator.store import activities
from orchestrator.transport.messages import RunActivity
from tests.conformance.engine.world import ME, World


@workflow.defn(name="celery_rules.call")
async def call() -> object:
    return await workflow.execute_activity("step", args=[], start_to_close_timeout=60)


def row_of(world: World, message: RunActivity) -> ActivityRecord:
    with world.engine.db.read() as conn:
        row = activities.get(conn, message.run_id, message.number)
    assert row is not None
    return row


def ticket_of(message: RunActivity, **changes: Any) -> Ticket:
    values: dict[str, Any] = {
        "run_id": message.run_id,
        "number": message.number,
        "attempt": message.attempt,
        "nonce": message.nonce,
        "published_at": message.published_at,
    }
    return Ticket(**{**values, **changes})


def begun(world: World) -> tuple[RunActivity, Claim]:
    world.start("celery_rules.call")
    message = world.next_attempt()
    return message, world.claimed(message)


def test_a_postponed_attempt_is_nobodys_until_its_retry_comes(world: World) -> None:
    message, claim = begun(world)
    assert attempts.postpone(world.engine, claim, 5_000_000, retried=True)
    row = row_of(world, message)
    assert (row.state, row.attempt, row.retries, row.worker_id) == (ActivityState.SCHEDULED, 1, 1, None)
    again = world.claim(message, retries=1)
    assert isinstance(again, Claim)
    assert again.token != claim.token
    assert not attempts.complete(world.engine, claim, world.engine.converter.encode(1).data)
    assert attempts.complete(world.engine, again, world.engine.converter.encode(2).data)


def test_an_older_message_does_not_overtake_a_waiting_retry(world: World) -> None:
    message, claim = begun(world)
    attempts.postpone(world.engine, claim, 5_000_000, retried=True)
    assert isinstance(world.claim(replace(message, nonce="another")), Refusal)
    assert isinstance(world.claim(message), Refusal)


def test_a_message_that_the_body_gave_back_is_claimed_again(world: World) -> None:
    message, claim = begun(world)
    attempts.postpone(world.engine, claim, 0, retried=False)
    assert isinstance(world.claim(message, redelivered=True), Claim)


def test_a_retry_whose_message_was_lost_is_sent_again_with_its_count(world: World) -> None:
    message, claim = begun(world)
    attempts.postpone(world.engine, claim, 5_000_000, retried=True)
    world.tick(timedelta(seconds=120))
    resent = world.next_attempt()
    assert (resent.attempt, resent.retries) == (1, 1)
    assert resent.nonce != message.nonce
    assert isinstance(world.claim(resent, retries=resent.retries), Claim)


def test_a_dead_process_is_a_loss_and_the_next_attempt_follows_at_once(world: World) -> None:
    message, _ = begun(world)
    assert attempts.report_gone(world.engine, ticket_of(message), ME.worker_id)
    row = row_of(world, message)
    assert (row.state, row.attempt, row.failures, row.losses) == (ActivityState.SCHEDULED, 2, 0, 1)
    assert world.next_attempt().attempt == 2


def test_only_the_attempt_that_the_worker_holds_is_reported_gone(world: World) -> None:
    message, claim = begun(world)
    for ticket, worker in (
        (ticket_of(message), "another worker"),
        (ticket_of(message, nonce="another"), ME.worker_id),
        (ticket_of(message, attempt=2), ME.worker_id),
        (ticket_of(message, number=99), ME.worker_id),
    ):
        assert not attempts.report_gone(world.engine, ticket, worker)
    assert attempts.complete(world.engine, claim, world.engine.converter.encode("ok").data)
    assert not attempts.report_gone(world.engine, ticket_of(message), ME.worker_id)


def test_what_a_shut_down_interrupts_counts_nowhere(world: World) -> None:
    message, _ = begun(world)
    assert attempts.report_gone(world.engine, ticket_of(message), ME.worker_id, handed_back=True)
    row = row_of(world, message)
    assert (row.attempt, row.failures, row.losses) == (2, 0, 0)


def test_a_process_killed_for_a_time_limit_is_a_failure_not_a_loss(world: World) -> None:
    message, _ = begun(world)
    failure = Failure(kind=FailureKind.TIMEOUT, type="ActivityTimeout", message="time_limit")
    assert attempts.report_gone(world.engine, ticket_of(message), ME.worker_id, failure=failure)
    row = row_of(world, message)
    assert (row.failures, row.losses) == (1, 0)


def test_a_process_killed_after_its_start_to_close_has_timed_out(world: World) -> None:
    message, _ = begun(world)
    world.clock.advance_to(world.clock.now() + 61_000_000)
    assert attempts.report_gone(world.engine, ticket_of(message), ME.worker_id)
    row = row_of(world, message)
    assert (row.failures, row.losses) == (1, 0)


def test_a_plain_task_that_celery_runs_again_when_lost_is_lost_three_times_before_it_fails(world: World) -> None:
    @workflow.defn(name="celery_rules.plain")
    async def plain() -> object:
        return await reruns.schedule((), {})

    from orchestrator.activity.calls import ActivityReference
    from orchestrator.activity.definition import ActivityDefinition
    from orchestrator.model.options import ActivityOptions

    options = ActivityOptions(legacy=True, celery_options={"reruns_when_lost": True})
    reruns: ActivityReference[..., Any] = ActivityReference(
        ActivityDefinition(name="step", function=None, legacy=True), options
    )
    world.start("celery_rules.plain")
    for expected in (1, 2, 3):
        message = world.next_attempt()
        assert message.attempt == expected
        world.claimed(message)
        assert attempts.report_gone(world.engine, ticket_of(message), ME.worker_id)
    world.decisions()
    assert world.run().status is RunStatus.FAILED
