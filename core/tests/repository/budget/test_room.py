from __future__ import annotations

import threading

import pytest

from tritonpy.repository.budget.eviction import Resident
from tritonpy.repository.budget.ledger import Ledger
from tritonpy.repository.budget.no_room import NoRoom, Outgrown
from tritonpy.repository.budget.patience import Patience
from tritonpy.repository.budget.room import Room
from tritonpy.repository.budget.sizes import Limits


class House:
    """Models of size as they were loaded; all are idle but those in `busy`, and go at once when they are evicted."""

    def __init__(self, total: int) -> None:
        self.ledger = Ledger(Limits(total))
        self.busy: set[str] = set()
        self.pinned: set[str] = set()
        self.evicted: list[str] = []
        self.room = Room(self.ledger, self.residents, self.evict, 3.0)
        self.told: list[str] = []

    def residents(self):
        return [
            Resident(key, accounts[0].sizes, place, key not in self.busy, key in self.pinned)
            for place, (key, accounts) in enumerate(self.ledger.staying().items())
        ]

    def evict(self, key):
        if key in self.busy:
            return False
        (account,) = self.ledger.staying()[key]
        self.evicted.append(key)
        account.leave()
        account.close()
        return True

    def load(self, key, size, patience=None):
        return self.room.reserve(key, {"cpu": size}, patience)

    def patience(self, wait_s=20.0, held=(), wanted=lambda: True):
        return Patience(wait_s, wanted, lambda: held, self.told.append)


def in_a_thread(call):
    """Start a call; `result()` waits for what it returns or raises."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(1)
    future = pool.submit(call)
    pool.shutdown(wait=False)
    return future


def wait_for(condition):
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError("it never came true")


def test_the_least_recently_used_ones_go_and_no_more_than_need_to():
    house = House(10)
    for key in "abc":
        house.load(key, 3)
    house.load("d", 5)
    assert house.evicted == ["a", "b"]
    assert house.ledger.used() == {"cpu": 8}


def test_what_can_never_fit_is_refused_at_once_with_the_numbers():
    house = House(10)
    house.load("a", 6)
    house.pinned.add("a")
    with pytest.raises(NoRoom, match="it needs 5 B, and the memory budget is 10 B, of which 6 B are held") as refused:
        house.load("b", 5, house.patience())
    assert refused.value.retry_after_s == 3.0
    assert house.evicted == []


def test_what_waits_for_nobody_is_refused_while_models_are_in_use():
    house = House(10)
    house.load("a", 6)
    house.busy.add("a")
    with pytest.raises(NoRoom):
        house.load("b", 5)


def test_what_has_patience_waits_until_models_are_idle_and_tells_what_it_waits_for():
    house = House(10)
    house.load("a", 6)
    house.busy.add("a")
    waiting = in_a_thread(lambda: house.load("b", 5, house.patience()))
    wait_for(lambda: house.told)
    assert house.room.waiting == 1
    house.busy.clear()
    assert waiting.result(20).key == "b"
    assert "of which 6 B are held" in house.told[0]
    assert house.room.waiting == 0


def test_who_waits_for_models_that_wait_for_it_is_refused_at_once():
    house = House(10)
    house.load("a", 6)
    house.busy.add("a")
    with pytest.raises(NoRoom):
        house.load("b", 5, house.patience(held=["a"]))


def test_what_nobody_wants_any_more_waits_no_longer():
    house = House(10)
    house.load("a", 6)
    house.busy.add("a")
    with pytest.raises(NoRoom):
        house.load("b", 5, house.patience(wanted=lambda: False))


def test_a_load_for_which_no_room_can_be_made_is_overtaken_at_first_and_then_no_more():
    house = House(10)
    house.load("a", 6)
    house.busy.add("a")
    patience = house.patience()
    large = in_a_thread(lambda: house.load("large", 10, patience))
    wait_for(lambda: house.told)
    assert house.load("small", 2, house.patience()).key == "small"
    object.__setattr__(patience, "since", patience.since - 10)
    with pytest.raises(NoRoom):
        house.load("other", 2, house.patience(wait_s=0.05))
    house.busy.clear()
    assert large.result(20).key == "large"


def test_a_model_that_turned_out_to_be_larger_has_others_go_and_is_refused_where_nobody_can():
    house = House(10)
    house.load("a", 4)
    account = house.load("b", 4)
    house.room.settle(account, {"cpu": 8})
    assert house.evicted == ["a"]
    with pytest.raises(Outgrown, match="it holds 11 B and that is too much: the memory budget is 10 B"):
        house.room.settle(account, {"cpu": 11})


def test_what_grew_while_it_was_loaded_has_idle_models_go():
    house = House(10)
    first = house.load("a", 4)
    house.load("b", 4)
    house.ledger.change(first, {"cpu": 7})
    assert house.room.shrink() == ""
    assert house.ledger.used() == {"cpu": 4}
    assert house.room.shrink() == ""
    assert house.evicted == ["a"]


def test_what_grew_while_nobody_can_go_is_told():
    house = House(10)
    account = house.load("a", 4)
    house.busy.add("a")
    house.ledger.change(account, {"cpu": 12})
    assert "the memory budget is 10 B, of which 12 B are held" in house.room.shrink()


def test_a_reload_never_has_what_it_replaces_go():
    house = House(10)
    house.load("a", 6)
    with pytest.raises(NoRoom):
        house.load("a", 6)
    assert house.evicted == []


def test_many_loads_at_once_are_never_over_the_limit():
    house = House(10)
    loads = [in_a_thread(lambda n=n: house.load(f"m{n}", 1 + n % 4, house.patience())) for n in range(40)]
    for load in loads:
        load.result(20)
    assert house.ledger.highest[""] <= 10
