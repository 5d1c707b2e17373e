from __future__ import annotations

from tritonpy.api.engine import ModelIndex
from tritonpy.repository.report import table_of


def test_the_table_has_a_line_per_version_and_per_line_of_a_reason():
    index = [
        ModelIndex("digits", "1", "READY", ""),
        ModelIndex("text", "", "UNAVAILABLE", "2 problems:\n  a"),
        ModelIndex("x"),
    ]
    assert table_of(index).splitlines() == [
        "+--------+---------+-------------+-------------+",
        "| Model  | Version | Status      | Reason      |",
        "+--------+---------+-------------+-------------+",
        "| digits | 1       | READY       |             |",
        "| text   | -       | UNAVAILABLE | 2 problems: |",
        "|        |         |             |   a         |",
        "| x      | -       | not loaded  |             |",
        "+--------+---------+-------------+-------------+",
    ]
