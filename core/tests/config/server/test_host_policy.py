from __future__ import annotations

import pytest

from tritonpy.config.server.host_policy import parse_cores


@pytest.mark.parametrize(
    ("text", "cores"),
    [("0-3", {0, 1, 2, 3}), ("0-1,4-5", {0, 1, 4, 5}), ("2", {2}), ("0,2-3", {0, 2, 3}), ("0-0, 7", {0, 7})],
)
def test_ranges_and_single_cores(text, cores):
    assert parse_cores(text) == cores


@pytest.mark.parametrize("text", ["", "a", "0-", "-3", "0-3-5", "0,", "1.5"])
def test_an_invalid_range_is_refused_with_tritons_text(text):
    with pytest.raises(ValueError, match="format is '<lower_cpu_core_id>-<upper_cpu_core_id>'"):
        parse_cores(text)


def test_a_reversed_range_has_no_cores():
    with pytest.raises(ValueError, match="names no core"):
        parse_cores("3-1")
