from __future__ import annotations

from random import Random

import pytest

from tritonpy_batching_slo.quantile import Quantile


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_it_finds_the_quantile(share):
    random, quantile = Random(0), Quantile(share, 0.01, 0.0)
    for _ in range(20_000):
        quantile.learn(random.random())
    assert quantile.value == pytest.approx(share, abs=0.06)


def test_the_value_stays_within_the_samples():
    quantile = Quantile(0.5, 10.0, 0.0)
    quantile.learn(1.0)
    assert quantile.value == 1.0
    quantile.learn(0.5)
    assert quantile.value == 0.5
