"""Replay compares what the code asks for with what history holds (protocol rule P5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator import workflow
from orchestrator.errors import NondeterminismError
from orchestrator.model import events as ev
from orchestrator.runtime.definition import define
from tests.unit.runtime.harness import CONVERTER, Run, act, new_instance


async def original() -> str:
    await act("charge", 1)
    await asyncio.sleep(5)
    workflow.side_effect(lambda: 1, name="dice")
    work = act("ship")
    await workflow.wait_for_signal("go", timeout=60)
    work.cancel()
    return "done"


def driven() -> Run:
    run = Run(original)
    run.start()
    run.complete(1)
    run.fire(2)
    run.signal("go")
    assert run.kinds() == [
        "RunStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "TimerStarted",
        "TimerFired",
        "SideEffectRecorded",
        "ActivityScheduled",
        "TimerStarted",
        "SignalWaitOpened",
        "SignalReceived",
        "TimerCancelled",
        "ActivityCancelRequested",
        "RunCompleted",
    ]
    return run


def test_the_same_code_replays_cleanly_again_and_again() -> None:
    run = driven()
    for _ in range(3):
        assert run.replayed().closed


def changed(
    *,
    first: Callable[[], Awaitable[Any]] = lambda: act("charge", 1),
    nap: Callable[[], Awaitable[Any]] = lambda: asyncio.sleep(5),
    effect: str | None = "dice",
    ship: Callable[[], asyncio.Future[Any]] = lambda: act("ship"),
    wait: Callable[[], Awaitable[Any]] = lambda: workflow.wait_for_signal("go", timeout=60),
    cancel: bool = True,
    surplus: bool = False,
    early: bool = False,
    late: bool = False,
) -> Any:
    async def code() -> str:
        await first()
        await nap()
        if early:
            return "too early"
        if effect is not None:
            workflow.side_effect(lambda: 1, name=effect)
        work = ship()
        await wait()
        if surplus:
            act("one more")
        if cancel:
            work.cancel()
        if late:
            await asyncio.sleep(1)
        return "done"

    return code


@pytest.mark.parametrize(
    ("change", "seq", "difference"),
    [
        ({"first": lambda: act("refund", 1)}, 2, "another name"),
        ({"first": lambda: act("charge", 2)}, 2, "another input"),
        ({"first": lambda: act("charge", 1, queue="slow")}, 2, "another queue"),
        ({"first": lambda: asyncio.sleep(1)}, 2, "another command"),
        ({"nap": lambda: asyncio.sleep(6)}, 4, "another duration"),
        ({"nap": lambda: workflow.sleep_until(datetime(2030, 1, 1, tzinfo=UTC))}, 4, "another duration"),
        ({"effect": "coin"}, 6, "another name"),
        ({"effect": None}, 6, "another command"),
        ({"ship": lambda: act("post")}, 7, "another name"),
        ({"wait": lambda: workflow.wait_for_signal("go")}, 8, "another command"),
        ({"wait": lambda: workflow.wait_for_signal("on", timeout=60)}, 9, "another name"),
        ({"wait": lambda: workflow.wait_for_signal("go", timeout=61)}, 8, "another duration"),
        ({"cancel": False}, 12, "another command"),
        ({"surplus": True}, 12, "another command"),
        ({"early": True}, 6, "another command"),
        ({"late": True}, 13, "another command"),
    ],
)
def test_a_difference_is_named_with_event_and_line(change: dict[str, Any], seq: int, difference: str) -> None:
    run = driven()
    with pytest.raises(NondeterminismError) as caught:
        run.replayed(changed(**change))
    text = str(caught.value)
    assert f"event {seq} of its history is" in text
    assert difference in text


def test_the_error_names_what_history_has_what_the_code_asked_for_and_where() -> None:
    run = driven()
    with pytest.raises(NondeterminismError) as caught:
        run.replayed(changed(first=lambda: act("refund", 1)))
    text = str(caught.value)
    assert "ActivityScheduled(number 1, name 'charge'" in text
    assert "asked for ActivityScheduled(number 1, name 'refund'" in text
    assert "Deploy the code" in text


def test_the_line_is_that_of_the_workflow_code() -> None:
    async def two() -> None:
        await asyncio.sleep(1)
        await asyncio.sleep(2)

    async def other() -> None:
        await asyncio.sleep(1)
        await asyncio.sleep(3)

    run = Run(two)
    run.start()
    run.fire(1)
    line = other.__code__.co_firstlineno + 2
    with pytest.raises(NondeterminismError, match=rf"test_replay\.py:{line} in .*other"):
        run.replayed(other)


def test_a_missing_command_at_the_end_of_an_activation_is_an_error() -> None:
    async def two() -> None:
        await asyncio.gather(act("a"), act("b"))

    async def one() -> None:
        await asyncio.gather(act("a"))

    run = Run(two)
    run.start()
    with pytest.raises(NondeterminismError, match="a command is missing.*event 3 of its history.*'b'"):
        run.replayed(one)


def test_a_surplus_command_at_the_very_end_of_history_is_an_error() -> None:
    async def one() -> None:
        await act("a")

    async def two() -> None:
        await asyncio.gather(act("a"), act("b"))

    run = Run(one)
    run.start()
    with pytest.raises(NondeterminismError, match="a command too many"):
        run.replayed(two)


def test_a_return_before_the_end_of_history_is_an_error() -> None:
    async def long() -> None:
        await act("a")
        await workflow.wait_condition(lambda: False)

    async def short() -> None:
        await act("a")

    run = Run(long)
    run.start()
    run.complete(1)
    run.signal("more")
    with pytest.raises(NondeterminismError, match="RunCompleted"):
        run.replayed(short)


def test_code_that_waits_longer_than_its_history_says_is_an_error() -> None:
    async def short() -> None:
        await act("a")

    async def long() -> None:
        await act("a")
        await workflow.wait_condition(lambda: False)

    run = Run(short)
    run.start()
    run.complete(1)
    with pytest.raises(NondeterminismError, match="event 4 of its history is RunCompleted"):
        run.replayed(long)


def test_an_event_about_something_that_is_not_open_is_an_error_naming_it() -> None:
    async def one() -> None:
        await act("a")
        await asyncio.sleep(9)

    run = Run(one)
    run.start()
    extra = ev.ActivityCompleted(number=7, attempt=1, result=b"jnull")
    history = [*run.history, ev.Event(seq=3, at=run.now, body=extra)]
    with pytest.raises(NondeterminismError, match=r"event 3 of its history is ActivityCompleted\(number 7"):
        run.replayed(events=history)


def test_a_history_that_begins_with_a_command_event_is_an_error() -> None:
    async def one() -> None: ...

    history = [ev.Event(seq=1, at=0, body=ev.TimerStarted(number=1, due_at=5))]
    with pytest.raises(NondeterminismError, match="event 1"):
        Run(one).replayed(events=history)


def test_an_absolute_due_time_that_changed_is_an_error() -> None:
    def at(year: int) -> Any:
        async def until() -> None:
            await workflow.sleep_until(datetime(year, 1, 1, tzinfo=UTC))

        return until

    run = Run(at(2030))
    run.start()
    run.replayed(at(2030))
    with pytest.raises(NondeterminismError, match="another due time"):
        run.replayed(at(2031))


def test_pairs_that_left_no_trace_are_no_difference_but_their_numbers_count() -> None:
    async def elides() -> None:
        act("x").cancel()
        asyncio.get_running_loop().call_later(1, print).cancel()
        await act("a")

    async def differently() -> None:
        asyncio.get_running_loop().call_later(2, print).cancel()
        act("y").cancel()
        await act("a")

    async def less() -> None:
        await act("a")

    run = Run(elides)
    run.start()
    run.complete(5)
    run.replayed()
    run.replayed(differently)
    with pytest.raises(NondeterminismError, match="another number"):
        run.replayed(less)


def test_replay_may_go_on_where_it_stopped_and_then_live() -> None:
    run = driven()
    starts = [index for index, event in enumerate(run.history) if not event.body.IS_COMMAND]
    for end in starts:
        instance = new_instance(run.definition)
        instance.replay(run.history[:end])
        instance.replay(run.history[end:])
        assert instance.closed


def test_an_instance_that_replayed_a_prefix_goes_on_live_with_the_same_commands() -> None:
    run = driven()
    external = [(index, event) for index, event in enumerate(run.history) if not event.body.IS_COMMAND]
    for index, event in external:
        instance = new_instance(run.definition)
        instance.replay(run.history[:index])
        issued = instance.apply(event.body, event.at)
        following = []
        for later in run.history[index + 1 :]:
            if not later.body.IS_COMMAND:
                break
            following.append(later.body)
        assert [command.event() for command in issued] == following


def test_the_input_of_the_run_is_part_of_what_is_replayed() -> None:
    async def takes(amount: int) -> None:
        await act("charge", amount)

    run = Run(takes, 5)
    run.start()
    instance = new_instance(define(takes), 6)
    with pytest.raises(NondeterminismError, match=r"another input.*workflow\.now\(\)"):
        instance.replay(run.history)


def test_sets_in_inputs_are_compared_sorted() -> None:
    async def takes() -> None:
        await act("charge", {"c", "a", "b"})

    async def same() -> None:
        await act("charge", {"b", "c", "a"})

    run = Run(takes)
    run.start()
    run.replayed(same)


def test_the_converter_is_used_for_what_history_holds() -> None:
    run = driven()
    recorded = [event.body for event in run.history if isinstance(event.body, ev.SideEffectRecorded)]
    assert [CONVERTER.decode(body.value) for body in recorded] == [1]
