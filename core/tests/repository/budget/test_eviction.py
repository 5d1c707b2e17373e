from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy.repository.budget.eviction import Resident, choose, could_fit, lasting, may_go
from tritonpy.repository.budget.sizes import Limits, added

PLACES = ("cpu", "0")
sizes = st.dictionaries(st.sampled_from(PLACES), st.integers(0, 5), max_size=2)
limits = st.builds(Limits, st.integers(0, 20), st.dictionaries(st.sampled_from(PLACES), st.integers(1, 12), max_size=2))


@st.composite
def crowds(draw):
    """Up to six models; an ensemble stands on some of those before it."""
    residents = []
    for number in range(draw(st.integers(0, 6))):
        members = (
            draw(st.frozensets(st.sampled_from([f"m{i}" for i in range(number)]), max_size=2))
            if number
            else frozenset()
        )
        residents.append(
            Resident(
                f"m{number}",
                {} if members else draw(sizes),
                draw(st.integers(0, 3)),
                draw(st.booleans()),
                draw(st.booleans()) and draw(st.booleans()),
                members,
            )
        )
    return residents


def used(residents, gone, need):
    return added([need, *(one.sizes for one in residents if one.key not in gone)])


def may_leave(residents, gone):
    """Say whether `gone` is a set of models that can go: idle ones, none of which one that stays stands on."""
    by_key = {one.key: one for one in residents}
    return all(by_key[key].idle and not by_key[key].fixed for key in gone) and not any(
        one.members & set(gone) for one in residents if one.key not in gone
    )


@given(crowds(), sizes, limits)
def test_who_goes_is_idle_and_not_fixed_and_makes_enough_room(residents, need, limits):
    gone = choose(residents, need, limits)
    if gone is not None:
        assert may_leave(residents, gone)
        assert not limits.excess(used(residents, gone, need))


@given(crowds(), sizes, limits)
def test_nobody_goes_who_could_stay(residents, need, limits):
    gone = choose(residents, need, limits)
    for stays in gone or ():
        fewer = [key for key in gone if key != stays]
        assert not may_leave(residents, fewer) or limits.excess(used(residents, fewer, need))


@given(crowds(), sizes, limits)
def test_there_is_no_room_only_where_no_set_of_models_could_make_it(residents, need, limits):
    if choose(residents, need, limits) is None:
        keys = [one.key for one in residents]
        for count in range(len(keys) + 1):
            for gone in combinations(keys, count):
                assert not may_leave(residents, gone) or limits.excess(used(residents, gone, need))


@given(crowds(), sizes, limits)
def test_each_goes_after_those_that_stand_on_it(residents, need, limits):
    gone = choose(residents, need, limits) or []
    for place, key in enumerate(gone):
        assert not any(key in one.members for one in residents if one.key in gone[place + 1 :])


@given(crowds(), sizes, limits, st.frozensets(st.sampled_from(["m0", "m1"])))
def test_what_fits_now_could_fit(residents, need, limits, held):
    if choose(residents, need, limits) is not None:
        assert could_fit(residents, need, limits)
    if could_fit(residents, need, limits, held):
        assert could_fit(residents, need, limits)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8, unique=True), st.integers(1, 8))
def test_of_models_of_one_size_the_least_recently_used_ones_go(last_uses, need):
    residents = [Resident(f"m{number}", {"cpu": 1}, last_use) for number, last_use in enumerate(last_uses)]
    gone = choose(residents, {"cpu": need}, Limits(len(residents)))
    if need > len(residents):
        assert gone is None
    else:
        assert gone == [one.key for one in sorted(residents, key=lambda one: one.last_use)][:need]


def test_an_older_model_stays_where_a_newer_one_makes_all_the_room():
    residents = [Resident("small", {"cpu": 1}, 1), Resident("large", {"cpu": 5}, 2)]
    assert choose(residents, {"cpu": 5}, Limits(6)) == ["large"]


def test_a_model_on_another_device_is_left_alone():
    residents = [Resident("on 1", {"1": 5}, 1), Resident("on 0", {"0": 5}, 2)]
    assert choose(residents, {"0": 5}, Limits(0, {"0": 5, "1": 5})) == ["on 0"]


def test_an_ensemble_goes_before_its_members_and_only_with_them():
    residents = [
        Resident("a", {"cpu": 2}, 5),
        Resident("b", {"cpu": 2}, 6),
        Resident("e", {}, 1, members=frozenset({"a"})),
    ]
    assert choose(residents, {"cpu": 2}, Limits(4)) == ["e", "a"]
    busy = [*residents[:2], Resident("e", {}, 1, idle=False, members=frozenset({"a"}))]
    assert choose(busy, {"cpu": 2}, Limits(4)) == ["b"]


def test_what_fixed_models_stand_on_lasts_too():
    residents = [
        Resident("a", {"cpu": 2}),
        Resident("b", {"cpu": 4}),
        Resident("e", {}, fixed=True, members=frozenset({"a"})),
    ]
    assert lasting(residents) == {"cpu": 2}
    assert lasting(residents, ["b"]) == {"cpu": 6}
    assert could_fit(residents, {"cpu": 4}, Limits(6))
    assert not could_fit(residents, {"cpu": 4}, Limits(6), held=["b"])


def test_a_load_overtakes_only_those_that_are_stuck_and_have_not_waited_for_long():
    assert may_go([])
    assert may_go([(True, False)])
    assert not may_go([(True, True)])
    assert not may_go([(False, False)])
    assert not may_go([(True, False), (False, False)])
