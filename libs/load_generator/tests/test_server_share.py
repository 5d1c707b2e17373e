from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_load_generator.figures.server_share import COUNTS, combine, statistics_between


def reading(inferences=0, executions=0, batches=None, **stages):
    return {
        "inference_count": inferences,
        "execution_count": executions,
        "inference_stats": {
            name: {"count": count, "ns": ns} for name, (count, ns) in stages.items()
        },
        "batch_stats": [
            {"batch_size": size, "compute_infer": {"count": count, "ns": 1}}
            for size, count in (batches or {}).items()
        ],
    }


def test_a_span_is_the_difference_of_two_readings():
    before = reading(10, 5, {1: 4, 2: 1}, success=(10, 1000), queue=(10, 100))
    after = reading(30, 9, {1: 4, 4: 3, 2: 2}, success=(30, 41_000), queue=(30, 20_100))
    found = statistics_between("m", [before], [after])
    assert (found.inferences, found.executions, found.mean_batch) == (20, 4, 5.0)
    assert found.batches == {2: 1, 4: 3}
    assert found.stages["success"].mean_us == 2.0
    assert found.stages["queue"].mean_us == 1.0
    assert found.stages["cache_hit"].mean_us == 0.0


def test_versions_are_added_up_and_numbers_as_strings_are_parsed():
    found = statistics_between("m", [], [reading("3", "1", {1: "1"}), reading(4, 2, {1: 2})])
    assert (found.inferences, found.executions, found.batches) == (7, 3, {1: 3})


def test_counters_that_decreased_restart_from_zero():
    found = statistics_between("m", [reading(100, 90, {8: 50})], [reading(7, 3, {8: 3})])
    assert (found.inferences, found.executions, found.batches) == (7, 3, {8: 3})


counts = st.integers(0, 1000)
steps = st.lists(
    st.tuples(counts, counts, st.dictionaries(st.integers(1, 8), counts)), min_size=2, max_size=5
)


@given(steps)
def test_spans_that_follow_each_other_add_up_to_the_whole(grown):
    readings, total, executed, sizes = [], 0, 0, dict.fromkeys(range(1, 9), 0)
    for inferences, executions, batches in grown:
        total, executed = total + inferences, executed + executions
        for size, count in batches.items():
            sizes[size] += count
        readings.append([reading(total, executed, dict(sizes), success=(total, total))])
    whole = statistics_between("m", readings[0], readings[-1])
    parts = combine(statistics_between("m", first, second) for first, second in pairwise(readings))
    assert parts == whole
    assert set(whole.stages) == set(COUNTS)
