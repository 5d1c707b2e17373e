from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_bench.figures.histogram import histogram
from tritonpy_bench.options import BadUsage
from tritonpy_bench.report.result import figures, read_results, write_json

from .results import level, result


def test_a_result_is_read_as_it_was_written(tmp_path):
    written = result(level(1.0), level(2.0, failed=3, errors={"no room": 3}))
    write_json(tmp_path / "a.json", written)
    assert read_results([tmp_path / "a.json"]) == [written]


@pytest.mark.parametrize("content", ["", "{}", '{"format": 1}', "[1]"])
def test_a_file_that_is_no_result_is_named(tmp_path, content):
    path = tmp_path / "b.json"
    path.write_text(content)
    with pytest.raises(BadUsage, match=r"b\.json is no result of tritonpy bench"):
        read_results([path])


def test_a_result_of_another_format_is_refused(tmp_path):
    write_json(tmp_path / "a.json", result(format=99))
    with pytest.raises(BadUsage, match="has the format 99, this version reads 1"):
        read_results([tmp_path / "a.json"])


@given(st.lists(st.integers(1, 10**9), min_size=1))
def test_figures_never_fall_along_the_curve(values):
    told = figures(histogram(values))
    durations = [value for _, value in told.curve]
    assert durations == sorted(durations)
    assert told.p50 <= told.p90 <= told.p95 <= told.p99 <= told.p999 <= told.most
    assert told.at(50) == pytest.approx(told.p50)
    assert told.at(None) == told.mean
    assert told.p90 * 0.999 <= told.at(91) <= told.p95 * 1.001


def test_no_durations_have_no_curve():
    told = figures(histogram([]))
    assert (told.curve, told.mean, told.at(99), told.least) == ((), 0.0, 0.0, 0.0)
