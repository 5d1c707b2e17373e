from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_rate_limiter.grant_order import Contender, grantable, spent_on_entry
from tritonpy_rate_limiter.resources import Resource

NAMES = [Resource(0, name) for name in "abc"]
MOST = 4
FULL = dict.fromkeys(NAMES, MOST)


@st.composite
def contenders(draw):
    counts = st.dictionaries(st.sampled_from(NAMES), st.integers(0, MOST), min_size=1)
    each = st.tuples(counts, st.integers(1, 3), st.integers(0, 20))
    return [
        Contender(demands, priority, spent, arrival)
        for arrival, (demands, priority, spent) in enumerate(draw(st.lists(each)))
    ]


free = st.fixed_dictionaries({name: st.integers(0, MOST) for name in NAMES})


@given(contenders(), free)
def test_no_grant_exceeds_the_totals(waiting, left):
    chosen = grantable(waiting, left)
    for name in NAMES:
        assert sum(each.demands.get(name, 0) for each in chosen) <= left[name]


@given(contenders(), free)
def test_the_instance_that_spent_least_runs_when_its_demand_is_free(waiting, left):
    if waiting:
        first = min(waiting, key=lambda each: each.order)
        enough = all(left[name] >= count for name, count in first.demands.items())
        assert (first in grantable(waiting, left)) == enough


@given(contenders(), free)
def test_a_later_instance_does_not_take_reserved_resources(waiting, left):
    order = sorted(waiting, key=lambda each: each.order)
    chosen = grantable(waiting, left)
    for place, contender in enumerate(order):
        if contender in chosen:
            for name, count in contender.demands.items():
                assert (
                    sum(each.demands.get(name, 0) for each in order[:place]) + count <= left[name]
                )


@given(contenders())
def test_with_everything_free_an_instance_runs(waiting):
    assert bool(grantable(waiting, FULL)) == bool(waiting)


def test_an_instance_with_other_demands_passes():
    a, b = NAMES[0], NAMES[1]
    blocked, other, behind = (
        Contender({a: 4}, 1),
        Contender({b: 1}, 1, spent=9),
        Contender({a: 1}, 1, spent=9),
    )
    assert grantable([blocked, other, behind], {a: 2, b: 1}) == [other]


def test_idle_time_earns_no_credit():
    a, b = NAMES[0], NAMES[1]
    newcomer = Contender({a: 1}, 1)
    assert (
        spent_on_entry(
            newcomer, [Contender({a: 1}, 1, spent=50), Contender({a: 2}, 1, spent=70)], []
        )
        == 50
    )
    assert spent_on_entry(newcomer, [Contender({b: 1}, 1, spent=50)], []) == 0
    assert spent_on_entry(newcomer, [], []) == 0


def test_a_running_rival_counts_with_its_previous_spending():
    a = NAMES[0]
    assert (
        spent_on_entry(
            Contender({a: 1}, 1), [Contender({a: 1}, 1, spent=50)], [Contender({a: 1}, 3, spent=52)]
        )
        == 49
    )


def test_higher_spending_is_kept():
    a = NAMES[0]
    assert (
        spent_on_entry(Contender({a: 1}, 1, spent=80), [Contender({a: 1}, 1, spent=50)], []) == 80
    )


def test_a_new_instance_of_lower_priority_starts_two_executions_behind():
    a = NAMES[0]
    first, second = Contender({a: 1}, 2, arrival=1), Contender({a: 1}, 1, spent=2, arrival=2)
    assert grantable([first, second], {a: 1}) == [first]
    second.spent = 1
    assert grantable([first, second], {a: 1}) == [second]
