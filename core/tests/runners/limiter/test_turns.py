from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy.runners.limiter.resources import Resource
from tritonpy.runners.limiter.turns import Contender, caught_up, next_turns

NAMES = [Resource(0, name) for name in "abc"]
MOST = 4
FULL = dict.fromkeys(NAMES, MOST)


@st.composite
def contenders(draw):
    counts = st.dictionaries(st.sampled_from(NAMES), st.integers(0, MOST), min_size=1)
    each = st.tuples(counts, st.integers(1, 3), st.integers(0, 20))
    return [
        Contender(needs, priority, spent, arrival)
        for arrival, (needs, priority, spent) in enumerate(draw(st.lists(each)))
    ]


free = st.fixed_dictionaries({name: st.integers(0, MOST) for name in NAMES})


@given(contenders(), free)
def test_nobody_gets_what_is_not_there(waiting, left):
    chosen = next_turns(waiting, left)
    for name in NAMES:
        assert sum(each.needs.get(name, 0) for each in chosen) <= left[name]


@given(contenders(), free)
def test_the_thriftiest_runs_whenever_there_is_what_it_needs(waiting, left):
    if waiting:
        first = min(waiting, key=lambda each: each.order)
        enough = all(left[name] >= count for name, count in first.needs.items())
        assert (first in next_turns(waiting, left)) == enough


@given(contenders(), free)
def test_who_runs_takes_nothing_that_one_before_it_waits_for(waiting, left):
    order = sorted(waiting, key=lambda each: each.order)
    chosen = next_turns(waiting, left)
    for place, contender in enumerate(order):
        if contender in chosen:
            for name, count in contender.needs.items():
                assert sum(each.needs.get(name, 0) for each in order[:place]) + count <= left[name]


@given(contenders())
def test_with_everything_free_somebody_runs(waiting):
    assert bool(next_turns(waiting, FULL)) == bool(waiting)


def test_who_needs_none_of_what_is_short_goes_past():
    a, b = NAMES[0], NAMES[1]
    blocked, other, behind = Contender({a: 4}, 1), Contender({b: 1}, 1, spent=9), Contender({a: 1}, 1, spent=9)
    assert next_turns([blocked, other, behind], {a: 2, b: 1}) == [other]


def test_what_was_not_used_is_no_credit():
    a, b = NAMES[0], NAMES[1]
    newcomer = Contender({a: 1}, 1)
    assert caught_up(newcomer, [Contender({a: 1}, 1, spent=50), Contender({a: 2}, 1, spent=70)], []) == 50
    assert caught_up(newcomer, [Contender({b: 1}, 1, spent=50)], []) == 0
    assert caught_up(newcomer, [], []) == 0


def test_of_a_rival_that_runs_what_it_had_spent_before_counts():
    a = NAMES[0]
    assert caught_up(Contender({a: 1}, 1), [Contender({a: 1}, 1, spent=50)], [Contender({a: 1}, 3, spent=52)]) == 49


def test_who_spent_more_than_its_rivals_owes_it_still():
    a = NAMES[0]
    assert caught_up(Contender({a: 1}, 1, spent=80), [Contender({a: 1}, 1, spent=50)], []) == 80


def test_of_two_that_have_not_run_the_one_of_lower_priority_is_behind_by_two_executions():
    a = NAMES[0]
    first, second = Contender({a: 1}, 2, arrival=1), Contender({a: 1}, 1, spent=2, arrival=2)
    assert next_turns([first, second], {a: 1}) == [first]
    second.spent = 1
    assert next_turns([first, second], {a: 1}) == [second]
