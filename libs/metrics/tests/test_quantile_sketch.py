from __future__ import annotations

import random
from bisect import bisect_left, bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_config.server.sections import DEFAULT_QUANTILES, parse_quantiles
from tritonpy_metrics.quantile_sketch import QuantileSketch

TARGETS = parse_quantiles(DEFAULT_QUANTILES)


def sketch_of(values: list[int], portion: int) -> QuantileSketch:
    sketch = QuantileSketch(TARGETS)
    for start in range(0, len(values), portion):
        sketch.add(sorted(values[start : start + portion]))
    return sketch


def assert_right(sketch: QuantileSketch, values: list[int]) -> None:
    """Check that the rank of each quantile is within its error, plus one rank for rounding."""
    ordered = sorted(values)
    for quantile, error in TARGETS.items():
        found = sketch.quantile(quantile)
        assert found is not None
        lowest, highest = bisect_left(ordered, found) + 1, bisect_right(ordered, found)
        place, allowed = quantile * len(values), error * len(values) + 1
        assert lowest <= highest  # the result is one of the values
        assert lowest - allowed <= place <= highest + allowed


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=400), st.integers(1, 100))
def test_quantiles_keep_their_error_bounds(values: list[int], portion: int) -> None:
    assert_right(sketch_of(values, portion), values)


@pytest.mark.parametrize("kind", ["random", "ascending", "descending", "few values", "heavy tail"])
def test_many_values_need_few_samples(kind: str) -> None:
    source = random.Random(7)
    values = {
        "random": [source.randrange(10**6) for _ in range(50_000)],
        "ascending": list(range(50_000)),
        "descending": list(range(50_000, 0, -1)),
        "few values": [source.randrange(5) for _ in range(50_000)],
        "heavy tail": [int(source.paretovariate(1) * 100) for _ in range(50_000)],
    }[kind]
    sketch = sketch_of(values, 500)
    assert_right(sketch, values)
    assert sketch.count == 50_000
    assert sketch.size < 1500


def test_an_empty_sketch_has_no_quantiles() -> None:
    assert QuantileSketch(TARGETS).quantile(0.5) is None


def test_one_value_is_every_quantile() -> None:
    sketch = sketch_of([17], 1)
    assert {sketch.quantile(each) for each in TARGETS} == {17}
