from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_residency.eviction import (
    ResidentModel,
    choose_evictions,
    could_fit,
    may_proceed,
    permanent_sizes,
)
from tritonpy_residency.sizes import MemoryLimits, sum_sizes

DEVICES = ("cpu", "0")
sizes = st.dictionaries(st.sampled_from(DEVICES), st.integers(0, 5), max_size=2)
limits = st.builds(
    MemoryLimits,
    st.integers(0, 20),
    st.dictionaries(st.sampled_from(DEVICES), st.integers(1, 12), max_size=2),
)


@st.composite
def resident_sets(draw):
    """Return up to six models; ensembles have some of the models before them as members."""
    residents = []
    for number in range(draw(st.integers(0, 6))):
        members = (
            draw(st.frozensets(st.sampled_from([f"m{i}" for i in range(number)]), max_size=2))
            if number
            else frozenset()
        )
        residents.append(
            ResidentModel(
                f"m{number}",
                {} if members else draw(sizes),
                draw(st.integers(0, 3)),
                draw(st.booleans()),
                draw(st.booleans()) and draw(st.booleans()),
                members,
            )
        )
    return residents


def used(residents, evicted, demand):
    return sum_sizes([demand, *(one.sizes for one in residents if one.key not in evicted)])


def can_evict(residents, evicted):
    """Return whether all models in `evicted` can be evicted and no remaining ensemble needs them."""
    by_key = {one.key: one for one in residents}
    return all(by_key[key].idle and not by_key[key].permanent for key in evicted) and not any(
        one.members & set(evicted) for one in residents if one.key not in evicted
    )


@given(resident_sets(), sizes, limits)
def test_evicted_models_are_evictable_and_free_enough_memory(residents, demand, limits):
    evicted = choose_evictions(residents, demand, limits)
    if evicted is not None:
        assert can_evict(residents, evicted)
        assert not limits.excess(used(residents, evicted, demand))


@given(resident_sets(), sizes, limits)
def test_no_model_is_evicted_unnecessarily(residents, demand, limits):
    evicted = choose_evictions(residents, demand, limits)
    for kept in evicted or ():
        fewer = [key for key in evicted if key != kept]
        assert not can_evict(residents, fewer) or limits.excess(used(residents, fewer, demand))


@given(resident_sets(), sizes, limits)
def test_no_choice_is_returned_only_if_no_set_of_evictions_suffices(residents, demand, limits):
    if choose_evictions(residents, demand, limits) is None:
        keys = [one.key for one in residents]
        for count in range(len(keys) + 1):
            for evicted in combinations(keys, count):
                assert not can_evict(residents, evicted) or limits.excess(
                    used(residents, evicted, demand)
                )


@given(resident_sets(), sizes, limits)
def test_members_are_evicted_after_their_ensembles(residents, demand, limits):
    evicted = choose_evictions(residents, demand, limits) or []
    for place, key in enumerate(evicted):
        assert not any(key in one.members for one in residents if one.key in evicted[place + 1 :])


@given(resident_sets(), sizes, limits, st.frozensets(st.sampled_from(["m0", "m1"])))
def test_a_demand_that_fits_now_could_fit(residents, demand, limits, waiting_models):
    if choose_evictions(residents, demand, limits) is not None:
        assert could_fit(residents, demand, limits)
    if could_fit(residents, demand, limits, waiting_models):
        assert could_fit(residents, demand, limits)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8, unique=True), st.integers(1, 8))
def test_of_models_with_equal_size_the_least_recently_used_are_evicted(last_uses, demand):
    residents = [
        ResidentModel(f"m{number}", {"cpu": 1}, last_use)
        for number, last_use in enumerate(last_uses)
    ]
    evicted = choose_evictions(residents, {"cpu": demand}, MemoryLimits(len(residents)))
    if demand > len(residents):
        assert evicted is None
    else:
        assert (
            evicted == [one.key for one in sorted(residents, key=lambda one: one.last_use)][:demand]
        )


def test_an_older_model_stays_if_evicting_a_newer_one_suffices():
    residents = [ResidentModel("small", {"cpu": 1}, 1), ResidentModel("large", {"cpu": 5}, 2)]
    assert choose_evictions(residents, {"cpu": 5}, MemoryLimits(6)) == ["large"]


def test_a_model_on_another_device_is_left_alone():
    residents = [ResidentModel("on 1", {"1": 5}, 1), ResidentModel("on 0", {"0": 5}, 2)]
    assert choose_evictions(residents, {"0": 5}, MemoryLimits(0, {"0": 5, "1": 5})) == ["on 0"]


def test_an_ensemble_is_evicted_before_its_members_and_only_with_them():
    residents = [
        ResidentModel("a", {"cpu": 2}, 5),
        ResidentModel("b", {"cpu": 2}, 6),
        ResidentModel("e", {}, 1, members=frozenset({"a"})),
    ]
    assert choose_evictions(residents, {"cpu": 2}, MemoryLimits(4)) == ["e", "a"]
    busy = [*residents[:2], ResidentModel("e", {}, 1, idle=False, members=frozenset({"a"}))]
    assert choose_evictions(busy, {"cpu": 2}, MemoryLimits(4)) == ["b"]


def test_members_of_permanent_ensembles_are_permanent():
    residents = [
        ResidentModel("a", {"cpu": 2}),
        ResidentModel("b", {"cpu": 4}),
        ResidentModel("e", {}, permanent=True, members=frozenset({"a"})),
    ]
    assert permanent_sizes(residents) == {"cpu": 2}
    assert permanent_sizes(residents, ["b"]) == {"cpu": 6}
    assert could_fit(residents, {"cpu": 4}, MemoryLimits(6))
    assert not could_fit(residents, {"cpu": 4}, MemoryLimits(6), waiting_models=["b"])


def test_a_load_overtakes_only_blocked_loads_that_are_not_urgent():
    assert may_proceed([])
    assert may_proceed([(True, False)])
    assert not may_proceed([(True, True)])
    assert not may_proceed([(False, False)])
    assert not may_proceed([(True, False), (False, False)])
