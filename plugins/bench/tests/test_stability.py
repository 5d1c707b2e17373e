from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_bench.stability import Window, window, windows_agree
from tritonpy_load_generator.figures.histogram import make_histogram
from tritonpy_load_generator.figures.snapshot import Snapshot

figures = st.floats(0.001, 1e9)
windows = st.lists(st.builds(Window, figures, figures), min_size=3, max_size=8)


def test_two_windows_are_never_enough():
    assert not windows_agree([Window(1, 1)] * 2, 1000)
    assert windows_agree([Window(1, 1)] * 3, 0)


def test_only_the_last_three_count():
    assert windows_agree([Window(900, 1), *[Window(1, 1)] * 3], 10)
    assert not windows_agree([*[Window(1, 1)] * 3, Window(900, 1)], 10)


def test_rate_and_latency_must_both_agree():
    assert not windows_agree([Window(100, 1), Window(100, 1), Window(111, 1)], 10)
    assert not windows_agree([Window(1, 100), Window(1, 100), Window(1, 111)], 10)
    assert windows_agree([Window(100, 100), Window(105, 95.5), Window(110, 105)], 10)


def test_windows_in_which_nothing_succeeded_do_not_agree():
    assert not windows_agree([Window(0, 0)] * 3, 10)


@given(windows, st.floats(0, 100), st.floats(0, 100))
def test_a_stable_load_stays_stable_with_more_windows(seen, percent, more):
    if windows_agree(seen, percent):
        assert windows_agree(seen, percent + more)


@given(windows, st.floats(0.1, 1000))
def test_units_do_not_matter(seen, factor):
    scaled = [Window(each.rate * factor, each.latency_ns * factor) for each in seen]
    assert windows_agree(scaled, 10.001) or not windows_agree(seen, 10)


def test_the_watched_latency_is_the_mean_or_a_percentile():
    seen = Snapshot(
        begin_ns=0, end_ns=2_000_000_000, latency=make_histogram([1, 1, 1, 9]), succeeded=4
    )
    assert window(seen, None) == Window(2.0, 3.0)
    assert window(seen, 99) == Window(2.0, 9.0)
