"""What the demo shows is read from the shop's rows: where orders stand, one order's timeline, the final table."""

from __future__ import annotations

import io

from rich.console import Console

from activities.demo.progress import Mark, Track, read_tracks, running_steps, share_done
from activities.demo.report import Account, final_table
from activities.demo.storyline import Moment, Record, lanes_of
from activities.demo.timeline import Gap, Kind, Lane, Stretch, draw
from activities.demo.view import Frame, LiveView, PlainView, choose, words
from activities.orders.effects import Entry, Tally
from activities.orders.fates import STEPS
from activities.orders.models import Ending
from activities.orders.reading import read_orders

ORDERS = read_orders().orders[:12]
ORDER = ORDERS[0]
SECOND = 1_000_000
OLD, NEW = 111, 222


def entry(step: str, *, pid: int = OLD, at: int = 0, attempt: int = 1, key: str = "") -> Entry:
    return Entry(order_id=ORDER.order_id, step=step, attempt=attempt, pid=pid, at=at, key=key or f"run/{step}")


def track(*, calls: list[str], effects: list[str], dead: tuple[int, ...] = ()) -> Track:
    return read_tracks([ORDER], [entry(step) for step in calls], [entry(step) for step in effects], dead)[0]


def marks(track: Track) -> str:
    return "".join(mark.value for mark in track.marks.values())


def test_an_order_that_has_not_come_in_has_only_steps_to_come() -> None:
    read = track(calls=[], effects=[])
    assert (marks(read), read.begun, read.moving, read.ending) == ("○○○○○", False, False, None)


def test_a_step_that_was_asked_for_and_is_not_done_is_running() -> None:
    read = track(calls=["reserve_stock", "charge"], effects=["reserve_stock"])
    assert marks(read) == "●◐○○○"
    assert running_steps([read]) == 1


def test_a_running_step_of_a_dead_process_is_cut_off_until_it_is_made_again() -> None:
    cut_off = track(calls=["reserve_stock", "charge"], effects=["reserve_stock"], dead=(OLD,))
    assert (marks(cut_off), cut_off.cut_off) == ("●✗○○○", True)
    calls = [entry("charge"), entry("charge", pid=NEW, attempt=2)]
    assert read_tracks([ORDER], calls, [], (OLD,))[0].marks["charge"] is Mark.RUNNING


def test_the_endings_are_read_from_what_was_refused() -> None:
    shipped = track(calls=list(STEPS), effects=list(STEPS))
    stock = track(calls=["reserve_stock", "notify"], effects=["notify"])
    card = track(
        calls=["reserve_stock", "charge", "release_stock", "notify"],
        effects=["reserve_stock", "release_stock", "notify"],
    )
    undone = ["refund", "void_invoice", "release_stock", "notify"]
    nowhere = track(calls=[*STEPS, *undone], effects=["reserve_stock", "charge", "invoice", *undone])
    refused = track(
        calls=["reserve_stock", "charge", "refund", "release_stock", "notify"],
        effects=["reserve_stock", "charge", "refund", "release_stock", "notify"],
    )
    assert [read.ending for read in (shipped, stock, card, nowhere, refused)] == [
        Ending.SHIPPED,
        Ending.OUT_OF_STOCK,
        Ending.DECLINED,
        Ending.UNDELIVERABLE,
        Ending.REFUSED,
    ]
    assert [marks(read) for read in (card, nowhere, refused)] == ["↶–○○●", "↶↶–↶●", "↶↶○○●"]


def test_an_ended_order_counts_as_done_in_full() -> None:
    half = track(calls=["reserve_stock"], effects=["reserve_stock"])
    ended = track(calls=["reserve_stock", "notify"], effects=["notify"])
    assert share_done([half, ended]) == 0.6
    assert share_done([]) == 1.0


def test_a_timeline_has_a_row_for_each_lane_and_the_gap_through_all_of_them() -> None:
    lanes = [
        Lane(label="reserve", stretches=[Stretch(start=0, end=SECOND)]),
        Lane(label="charge", stretches=[Stretch(start=SECOND, end=2 * SECOND, ends_with="✗")], note="cut"),
        Lane(label="wait", stretches=[Stretch(start=4 * SECOND, end=10 * SECOND, kind=Kind.WAIT, ends_with="▲")]),
    ]
    lines = draw(lanes, Gap(start=2 * SECOND, end=4 * SECOND), width=64)
    assert lines[0].split() == ["0", "s", "2", "s", "4", "s", "6", "s", "8", "s", "10", "s"]
    assert [line.count("░") for line in lines[1:]] == [11, 10, 11]
    assert "✗░" in lines[2]
    assert lines[2].endswith("cut")
    assert lines[3].rstrip().endswith("▲")


def test_a_timeline_of_one_instant_can_be_drawn() -> None:
    assert "█" in draw([Lane(label="x", stretches=[Stretch(start=5, end=5)])], None)[1]


def test_an_order_story_shows_calls_retries_and_the_wait_for_approval() -> None:
    moments = [
        Moment(kind="ActivityScheduled", at=0, number=1, name="charge"),
        Moment(kind="ActivityCompleted", at=9 * SECOND, number=1),
        Moment(kind="TimerStarted", at=9 * SECOND, number=2),
        Moment(kind="TimerFired", at=12 * SECOND, number=2),
        Moment(kind="SignalReceived", at=13 * SECOND),
        Moment(kind="ActivityScheduled", at=13 * SECOND, number=3, name="ship"),
        Moment(kind="ActivityCompleted", at=14 * SECOND, number=3),
    ]
    calls = [
        entry("charge", at=1 * SECOND),
        entry("charge", at=2 * SECOND, attempt=2),
        entry("charge", at=8 * SECOND, attempt=3, pid=NEW),
        entry("ship", at=13 * SECOND, pid=NEW),
    ]
    effects = [entry("charge"), entry("ship")]
    record = Record(moments=moments, calls=calls, effects=effects)
    lanes = lanes_of(record, Gap(start=3 * SECOND, end=5 * SECOND), (OLD,))
    assert [lane.label for lane in lanes] == ["charge", "approval", "ship"]
    assert [(stretch.end, stretch.ends_with) for stretch in lanes[0].stretches][1:] == [
        (3 * SECOND, "✗"),
        (9 * SECOND, ""),
    ]
    assert [lane.note for lane in lanes] == ["3 calls, 1 effect", "answered by a signal", ""]
    assert (lanes[1].stretches[0].start, lanes[1].stretches[0].end) == (9 * SECOND, 13 * SECOND)


def frame(*, seconds: float = 1.0, closing: bool = False) -> Frame:
    calls = [entry("reserve_stock"), entry("notify")]
    ours = read_tracks(ORDERS, calls, [entry("notify")], ())
    bare = read_tracks(ORDERS, [entry("charge")], [], (OLD,))
    given = frozenset(order.order_id for order in ORDERS[:-1])
    waiting = frozenset({ORDERS[2].order_id})
    return Frame(
        seconds=seconds,
        state="working",
        workflows=ours,
        chains=bare,
        given=given,
        waiting=waiting,
        closing=closing,
    )


def test_words_say_where_an_order_stands() -> None:
    now = frame()
    assert [words(track, now, workflow=True) for track in now.workflows[:3]] == [
        "out of stock",
        "queued",
        "waits for approval",
    ]
    assert [words(track, now, workflow=False) for track in now.chains[:3]] == ["cut off", "queued", "queued"]
    assert words(now.workflows[-1], now, workflow=True) == ""
    assert words(now.chains[1], frame(closing=True), workflow=False) == "stuck"
    running = track(calls=["reserve_stock", "charge"], effects=["reserve_stock"])
    assert words(running, now, workflow=True) == "charge"


def test_the_live_view_has_a_line_for_each_order_and_both_ways_beside_each_other() -> None:
    out = io.StringIO()
    with LiveView(Console(file=out, force_terminal=True, width=140, height=40)) as view:
        view.show(frame(closing=True))
    text = out.getvalue()
    assert all(order.order_id in text for order in ORDERS)
    assert "out of stock" in text
    assert "stuck" in text


def test_a_short_terminal_shows_the_orders_on_their_way_first() -> None:
    shown = choose(frame(), 3)
    assert len(shown) == 3
    assert 0 in shown


def test_the_plain_view_tells_each_ending_once() -> None:
    out = io.StringIO()
    view = PlainView(Console(file=out, width=80))
    for seconds in (1.0, 1.1, 9.0):
        view.show(frame(seconds=seconds))
    assert out.getvalue().count("out of stock") == 1
    assert out.getvalue().count("1 of 12 workflows ended") == 2


def test_the_final_table_counts_what_is_stuck_and_what_was_done_twice() -> None:
    out = io.StringIO()
    now = frame()
    accounts = [
        Account(
            name=name,
            tracks=tracks,
            tally=Tally(calls=7, effects=6, doubles=doubles),
            repeated=2,
            seconds=None,
        )
        for name, tracks, doubles in (("ours", now.workflows, 0), ("bare", now.chains, 3))
    ]
    Console(file=out, width=100).print(final_table(accounts))
    rows = {
        line.split("│")[1].strip(): [cell.strip() for cell in line.split("│")[2:4]]
        for line in out.getvalue().splitlines()
        if "│" in line
    }
    assert rows["stuck for ever"] == ["11", "12"]
    assert rows["effects applied twice"] == ["0", "3"]
    assert rows["out of stock"] == ["1", "0"]
    assert rows["seconds"] == ["never done", "never done"]
