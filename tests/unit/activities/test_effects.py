"""The shop counts what its steps did, and finds an effect that was done before by its key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from activities.orders import effects
from activities.orders.effects import Shop, current_shop, use_shop
from activities.orders.fates import Fate, fate_of, latency_of
from activities.orders.models import Order
from activities.orders.outside import CardDeclined, GatewayBusy, GatewayTimeout, OutOfStock, Undeliverable, perform
from activities.orders.reading import read_orders

ORDERS = read_orders().orders


def order_with(fate: Fate) -> Order:
    return next(order for order in ORDERS if fate_of(order.order_id) is fate)


def no_pause(_seconds: float) -> None:
    """The outside answers at once."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shop.db'}"


@pytest.fixture
def shop(url: str) -> Iterator[Shop]:
    shop = Shop(url, clock=lambda: 1_000_000, pause=no_pause)
    use_shop(shop)
    yield shop
    use_shop(None)
    shop.close()


def test_a_call_is_one_row_in_calls_and_one_effect(shop: Shop) -> None:
    perform(order_with(Fate.SMOOTH), "charge", attempt=2, key="run/3")
    (call,) = shop.calls()
    assert (call.step, call.attempt, call.key, call.at) == ("charge", 2, "run/3", 1_000_000)
    assert [entry.key for entry in shop.ledger()] == ["run/3"]


def test_the_same_key_again_is_another_call_but_no_other_effect(shop: Shop) -> None:
    for attempt in (1, 2):
        perform(order_with(Fate.SMOOTH), "charge", attempt=attempt, key="run/3")
    assert shop.tally() == effects.Tally(calls=2, effects=1, doubles=0)


def test_without_idempotency_keys_a_repeated_call_is_a_repeated_effect(url: str) -> None:
    use_shop(shop := Shop(url, keyed=False, pause=no_pause))
    for attempt in (1, 2, 3):
        perform(order_with(Fate.SMOOTH), "charge", attempt=attempt, key="run/3")
    assert shop.tally() == effects.Tally(calls=3, effects=3, doubles=2)
    use_shop(None)
    shop.close()


def test_many_threads_with_one_key_have_one_effect(shop: Shop) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: shop.apply_effect(order_id="A", step="charge", attempt=n, key="k"), range(24)))
    assert Counter(done) == {True: 1, False: 23}


def test_a_refused_step_leaves_a_call_and_no_effect(shop: Shop) -> None:
    for fate, step, error in (
        (Fate.OUT_OF_STOCK, "reserve_stock", OutOfStock),
        (Fate.CARD_DECLINED, "charge", CardDeclined),
        (Fate.UNDELIVERABLE, "ship", Undeliverable),
        (Fate.GATEWAY_BUSY, "charge", GatewayBusy),
    ):
        with pytest.raises(error):
            perform(order_with(fate), step, attempt=1, key=fate)
    assert shop.tally() == effects.Tally(calls=4, effects=0, doubles=0)


def test_a_busy_gateway_answers_the_second_attempt(shop: Shop) -> None:
    perform(order_with(Fate.GATEWAY_BUSY), "charge", attempt=2, key="k")
    assert shop.tally().effects == 1


def test_a_lost_answer_leaves_its_effect_behind(shop: Shop) -> None:
    order = order_with(Fate.ANSWER_LOST)
    with pytest.raises(GatewayTimeout):
        perform(order, "charge", attempt=1, key="k")
    perform(order, "charge", attempt=2, key="k")
    assert shop.tally() == effects.Tally(calls=2, effects=1, doubles=0)


def test_the_effect_comes_halfway_through_the_call(shop: Shop) -> None:
    seen: list[tuple[float, int]] = []
    order = order_with(Fate.SMOOTH)
    shop.pause = lambda seconds: seen.append((seconds, shop.tally().effects))
    perform(order, "ship", attempt=1, key="k")
    half = latency_of(order.order_id, "ship").total_seconds() / 2
    assert seen == [(half, 0), (half, 1)]


def test_every_fate_is_in_the_sample_file_and_most_orders_go_smoothly() -> None:
    fates = Counter(fate_of(order.order_id) for order in ORDERS)
    assert set(fates) == set(Fate)
    assert fates[Fate.SMOOTH] > len(ORDERS) / 2


def test_the_outside_takes_50_to_300_milliseconds() -> None:
    took = [latency_of(order.order_id, step).total_seconds() for order in ORDERS for step in ("charge", "ship")]
    assert min(took) >= 0.05
    assert max(took) <= 0.3


def test_a_process_without_a_shop_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(effects.DATABASE_VARIABLE, raising=False)
    use_shop(None)
    with pytest.raises(LookupError, match="SHOP_DATABASE_URL"):
        current_shop()


def test_the_environment_names_the_shop(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(effects.DATABASE_VARIABLE, url)
    use_shop(None)
    assert current_shop() is current_shop()
    current_shop().close()
    use_shop(None)


def test_the_environment_can_ask_for_the_control_case(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(effects.DATABASE_VARIABLE, url)
    monkeypatch.setenv(effects.KEYS_VARIABLE, "random")
    use_shop(None)
    for attempt in (1, 2):
        current_shop().apply_effect(order_id="A-1", step="charge", attempt=attempt, key="same")
    assert current_shop().tally().doubles == 1
    current_shop().close()
    use_shop(None)
