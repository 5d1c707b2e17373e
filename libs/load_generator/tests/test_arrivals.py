from __future__ import annotations

from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_load_generator.loops.arrivals import (
    client_arrivals,
    constant_arrivals,
    poisson_arrivals,
    read_intervals,
    spaced_arrivals,
)
from tritonpy_load_generator.options import BadUsage

S = 1_000_000_000
rates = st.floats(0.1, 1e6)


@given(rates, st.integers(0, 100_000))
def test_constant_arrivals_do_not_drift(rate, number):
    at = next(islice(constant_arrivals(rate), number, None))
    assert at == pytest.approx(number * S / rate, abs=1, rel=1e-12)


@given(rates, st.integers())
def test_poisson_arrivals_ascend_and_depend_on_the_seed_only(rate, seed):
    some = list(islice(poisson_arrivals(rate, seed), 200))
    assert some == sorted(some)
    assert some == list(islice(poisson_arrivals(rate, seed), 200))


def test_poisson_arrivals_have_their_rate_and_their_spread():
    some = list(islice(poisson_arrivals(1000, 7), 20_000))
    gaps = [later - earlier for earlier, later in pairwise(some)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(S / 1000, rel=0.05)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert deviation == pytest.approx(mean, rel=0.05)  # an exponential distribution's


def test_intervals_are_kept_and_repeated():
    assert list(islice(spaced_arrivals([10, 20]), 5)) == [0, 10_000, 30_000, 40_000, 60_000]


@given(st.integers(1, 5), st.integers(1, 60))
def test_each_arrival_belongs_to_exactly_one_client_process(client_count, count):
    whole = list(islice(poisson_arrivals(100, 3), count * client_count))
    parts = [
        list(islice(client_arrivals(poisson_arrivals(100, 3), client_index, client_count), count))
        for client_index in range(client_count)
    ]
    assert sorted(at for part in parts for at in part) == whole


def test_a_file_of_intervals_is_read(tmp_path):
    path = tmp_path / "intervals"
    path.write_text("100\n250\n")
    assert read_intervals(path) == [100, 250]


@pytest.mark.parametrize("text", ["", "a\n", "0\n0\n", "-1\n5\n"])
def test_an_invalid_intervals_file_is_named_in_the_error(tmp_path, text):
    path = tmp_path / "intervals"
    path.write_text(text)
    with pytest.raises(BadUsage, match="intervals"):
        read_intervals(path)
