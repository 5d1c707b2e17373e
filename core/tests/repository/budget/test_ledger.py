from __future__ import annotations

from tritonpy.repository.budget.ledger import Ledger
from tritonpy.repository.budget.sizes import ALL, Limits


def test_an_account_is_opened_where_there_is_room_and_closed_once():
    ledger = Ledger(Limits(10))
    first = ledger.open("a", {"cpu": 6})
    assert ledger.open("b", {"cpu": 5}) is None
    assert ledger.used() == {"cpu": 6}
    first.close()
    first.close()
    assert ledger.used() == {}
    assert ledger.open("b", {"cpu": 5}) is not None
    assert ledger.highest == {ALL: 6, "cpu": 6}


def test_what_leaves_holds_its_memory_until_it_is_gone():
    ledger = Ledger(Limits(10))
    account = ledger.open("a", {"cpu": 6})
    account.leave()
    assert ledger.leaving() == {"cpu": 6}
    assert ledger.staying() == {}
    assert ledger.open("b", {"cpu": 5}) is None


def test_a_change_tells_by_how_much_the_limits_are_exceeded_then():
    ledger = Ledger(Limits(10, {"0": 3}))
    account = ledger.open("a", {"cpu": 6})
    assert ledger.change(account, {"cpu": 8, "0": 4}) == {ALL: 2, "0": 1}
    assert ledger.highest[ALL] == 12
    account.close()
    assert ledger.change(account, {"cpu": 1}) == {}, "it is gone"


def test_an_account_is_refreshed_by_what_measures_and_after_a_departure_by_what_is_left():
    ledger = Ledger(Limits(10))
    account = ledger.open("a", {"cpu": 1})
    account.refresh()
    assert account.sizes == {"cpu": 1}
    account.measure, account.later = lambda: {"cpu": 5}, lambda: {"cpu": 2}
    account.refresh()
    assert account.sizes == {"cpu": 5}
    account.departed()
    assert account.sizes == {"cpu": 2}
    account.leave()
    account.refresh()
    assert (account.sizes, account.measure) == ({"cpu": 2}, None)
