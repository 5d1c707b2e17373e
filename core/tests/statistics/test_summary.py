from __future__ import annotations

import pytest

from tritonpy.api.engine import SummarySnapshot
from tritonpy.statistics.summary import AGE_NS, BUFFER, ROTATION_NS, Summary

QUANTILES = {0.5: 0.01, 0.9: 0.01}


def test_count_and_sum_are_of_all_time_and_exact() -> None:
    summary = Summary(QUANTILES, 0)
    for value in range(3 * BUFFER):
        summary.observe(value, 0)
    assert summary.snapshot(10 * AGE_NS) == SummarySnapshot(
        3 * BUFFER, sum(range(3 * BUFFER)), [(0.5, None), (0.9, None)]
    )


def test_quantiles_are_available_immediately() -> None:
    summary = Summary(QUANTILES, 0)
    for value in range(1, 101):
        summary.observe(value, 0)
    assert dict(summary.snapshot(0).quantiles) == {0.5: pytest.approx(50, abs=2), 0.9: pytest.approx(90, abs=2)}


def test_an_empty_summary_has_no_quantiles() -> None:
    assert Summary(QUANTILES, 0).snapshot(0) == SummarySnapshot(0, 0, [(0.5, None), (0.9, None)])


def test_old_values_are_forgotten_within_a_minute() -> None:
    summary = Summary(QUANTILES, 0)
    summary.observe(1000, 0)
    summary.observe(1, ROTATION_NS)
    assert dict(summary.snapshot(AGE_NS - 1).quantiles)[0.9] == 1000
    assert dict(summary.snapshot(AGE_NS).quantiles)[0.9] == 1
    assert dict(summary.snapshot(AGE_NS + ROTATION_NS).quantiles)[0.9] is None


def test_a_value_after_a_long_pause_is_alone() -> None:
    summary = Summary(QUANTILES, 0)
    summary.observe(1000, 0)
    summary.observe(2, 7 * AGE_NS + 5)
    assert dict(summary.snapshot(7 * AGE_NS + 6).quantiles) == {0.5: 2, 0.9: 2}
    assert dict(summary.snapshot(8 * AGE_NS + ROTATION_NS).quantiles) == {0.5: None, 0.9: None}
