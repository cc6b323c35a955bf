"""The order workflow in memory: its endings, its approvals, and what is undone when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from activities.orders import steps
from activities.orders.effects import Shop, use_shop
from activities.orders.fates import Fate, fate_of
from activities.orders.models import Ending, Order, Rules
from activities.orders.reading import read_orders
from activities.orders.workflows import Fulfil
from orchestrator import WorkflowFailed
from orchestrator.testing import WorkflowEnvironment

ORDERS = read_orders().orders
RULES = Rules(approval_from_cents=10**9)
STRICT = Rules(approval_from_cents=1, remind_after=timedelta(hours=24), reminders=2)


def order_with(fate: Fate) -> Order:
    return next(order for order in ORDERS if fate_of(order.order_id) is fate)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    yield from open_shop(tmp_path, keyed=True)


@pytest.fixture
def careless_shop(tmp_path: Path) -> Iterator[Shop]:
    yield from open_shop(tmp_path, keyed=False)


def open_shop(path: Path, *, keyed: bool) -> Iterator[Shop]:
    shop = Shop(f"sqlite:///{path / 'shop.db'}", keyed=keyed, pause=lambda _seconds: None)
    use_shop(shop)
    yield shop
    use_shop(None)
    shop.close()


@pytest.fixture
def env() -> Iterator[WorkflowEnvironment]:
    with WorkflowEnvironment() as env:
        yield env


def effects(shop: Shop) -> list[str]:
    return [entry.step for entry in shop.ledger()]


def test_a_smooth_order_is_shipped_and_every_step_is_done_once(env: WorkflowEnvironment, shop: Shop) -> None:
    order = order_with(Fate.SMOOTH)
    outcome = env.run(Fulfil.run, order, RULES)
    assert outcome.ending is Ending.SHIPPED
    assert list(outcome.references) == ["reserve_stock", "charge", "ship", "invoice"]
    assert effects(shop) == ["reserve_stock", "charge", "ship", "invoice", "notify"]
    assert shop.tally().doubles == 0


@pytest.mark.parametrize(
    ("fate", "ending", "undone"),
    [
        (Fate.OUT_OF_STOCK, Ending.OUT_OF_STOCK, []),
        (Fate.CARD_DECLINED, Ending.DECLINED, ["release_stock"]),
        (Fate.UNDELIVERABLE, Ending.UNDELIVERABLE, ["void_invoice", "refund", "release_stock"]),
        (Fate.GATEWAY_BUSY, Ending.SHIPPED, []),
        (Fate.ANSWER_LOST, Ending.SHIPPED, []),
    ],
)
def test_what_was_done_is_undone_in_reverse(
    env: WorkflowEnvironment, shop: Shop, fate: Fate, ending: Ending, undone: list[str]
) -> None:
    outcome = env.run(Fulfil.run, order_with(fate), RULES)
    assert (outcome.ending, outcome.undone) == (ending, undone)
    assert effects(shop)[-1] == "notify"
    assert shop.tally().doubles == 0


def test_a_lost_answer_is_asked_for_again_under_the_same_key(env: WorkflowEnvironment, shop: Shop) -> None:
    env.run(Fulfil.run, order_with(Fate.ANSWER_LOST), RULES)
    calls = [call for call in shop.calls() if call.step == "charge"]
    assert [call.attempt for call in calls] == [1, 2]
    assert len({call.key for call in calls}) == 1
    assert effects(shop).count("charge") == 1


def test_without_idempotency_keys_the_lost_answer_charges_twice(env: WorkflowEnvironment, careless_shop: Shop) -> None:
    outcome = env.run(Fulfil.run, order_with(Fate.ANSWER_LOST), RULES)
    assert outcome.ending is Ending.SHIPPED
    assert effects(careless_shop).count("charge") == 2
    assert careless_shop.tally().doubles == 1


def test_a_big_order_waits_for_its_approval_and_reminds(env: WorkflowEnvironment, shop: Shop) -> None:
    handle = env.start(Fulfil.run, order_with(Fate.SMOOTH), STRICT)
    assert handle.query(Fulfil.stage) == "waiting for approval"
    env.call_later(timedelta(hours=30), lambda: handle.signal(Fulfil.approve, "ann"))
    outcome = handle.result()
    assert (outcome.ending, outcome.approved_by) == (Ending.SHIPPED, "ann")
    assert effects(shop).count("remind_approver 1") == 1
    assert "remind_approver 2" not in effects(shop)


def test_the_first_answer_counts_and_a_refused_order_is_undone(env: WorkflowEnvironment, shop: Shop) -> None:
    env.stub(steps.reserve_stock, returns="reserved", takes=timedelta(seconds=10))
    handle = env.start(Fulfil.run, order_with(Fate.SMOOTH), STRICT)
    handle.signal(Fulfil.refuse, "bo")
    handle.signal(Fulfil.approve, "ann")
    outcome = handle.result()
    assert (outcome.ending, outcome.undone, outcome.approved_by) == (Ending.REFUSED, ["refund", "release_stock"], None)
    assert "ship" not in effects(shop)


def test_an_approval_sent_early_is_not_forgotten(env: WorkflowEnvironment, shop: Shop) -> None:
    env.stub(steps.reserve_stock, returns="reserved", takes=timedelta(seconds=10))
    handle = env.start(Fulfil.run, order_with(Fate.SMOOTH), STRICT)
    handle.signal(Fulfil.approve, "ann")
    assert handle.result().approved_by == "ann"


def test_nobody_answers_and_the_order_is_given_up_after_the_last_reminder(env: WorkflowEnvironment, shop: Shop) -> None:
    began = env.now
    outcome = env.run(Fulfil.run, order_with(Fate.SMOOTH), STRICT)
    assert outcome.ending is Ending.REFUSED
    assert timedelta(hours=72) <= env.now - began < timedelta(hours=73)
    assert [step for step in effects(shop) if step.startswith("remind")] == ["remind_approver 1", "remind_approver 2"]


def test_an_unknown_failure_is_undone_and_fails_the_workflow(env: WorkflowEnvironment, shop: Shop) -> None:
    env.stub(steps.ship, raises=OSError("no route to the carrier"))
    handle = env.start(Fulfil.run, order_with(Fate.SMOOTH), RULES)
    with pytest.raises(WorkflowFailed, match="no route"):
        handle.result()
    # Whether the carrier took the parcel is not known, so it is recalled too.
    assert effects(shop)[-4:] == ["void_invoice", "recall_parcel", "refund", "release_stock"]


def test_a_cancelled_order_is_undone(env: WorkflowEnvironment, shop: Shop) -> None:
    handle = env.start(Fulfil.run, order_with(Fate.SMOOTH), STRICT)
    handle.cancel("changed their mind")
    assert handle.describe().status == "CANCELED"
    assert effects(shop)[-2:] == ["refund", "release_stock"]


def test_orders_of_all_fates_side_by_side_are_fulfilled_and_nothing_is_done_twice(
    env: WorkflowEnvironment, shop: Shop
) -> None:
    orders = [*(order_with(fate) for fate in Fate), *ORDERS[:6]]
    handles = {order.order_id: env.start(Fulfil.run, order, RULES, id=order.order_id) for order in orders}
    outcomes = [handle.result() for handle in handles.values()]
    assert {outcome.ending for outcome in outcomes} == set(Ending) - {Ending.REFUSED}
    assert shop.tally().doubles == 0
    assert effects(shop).count("notify") == len(handles)
