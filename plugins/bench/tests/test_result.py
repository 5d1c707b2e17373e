from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_bench.report.result import figures, read_results, write_json
from tritonpy_load_generator.figures.histogram import make_histogram
from tritonpy_load_generator.options import BadUsage

from .results import level, result


def test_a_result_survives_writing_and_reading(tmp_path):
    written = result(level(1.0), level(2.0, failed=3, errors={"no room": 3}))
    write_json(tmp_path / "a.json", written)
    assert read_results([tmp_path / "a.json"]) == [written]


@pytest.mark.parametrize("content", ["", "{}", '{"format": 1}', "[1]"])
def test_an_invalid_result_file_is_named(tmp_path, content):
    path = tmp_path / "b.json"
    path.write_text(content)
    with pytest.raises(BadUsage, match=r"b\.json is not a result of tritonpy bench"):
        read_results([path])


def test_a_result_of_another_format_is_rejected(tmp_path):
    write_json(tmp_path / "a.json", result(format=99))
    with pytest.raises(BadUsage, match="has format 99, but this version reads 1"):
        read_results([tmp_path / "a.json"])


@given(st.lists(st.integers(1, 10**9), min_size=1))
def test_percentiles_ascend_along_the_curve(values):
    summary = figures(make_histogram(values))
    durations = [value for _, value in summary.curve]
    assert durations == sorted(durations)
    assert summary.p50 <= summary.p90 <= summary.p95 <= summary.p99 <= summary.p999 <= summary.most
    assert summary.at(50) == pytest.approx(summary.p50)
    assert summary.at(None) == summary.mean
    assert summary.p90 * 0.999 <= summary.at(91) <= summary.p95 * 1.001


def test_no_durations_have_no_curve():
    summary = figures(make_histogram([]))
    assert (summary.curve, summary.mean, summary.at(99), summary.least) == ((), 0.0, 0.0, 0.0)
