from __future__ import annotations

from tritonpy.api.engine import ModelIndex
from tritonpy.repository.index_report import index_as_dicts, index_as_table


def test_the_table_has_a_line_per_version_and_per_line_of_a_reason():
    index = [
        ModelIndex("digits", "1", "READY", ""),
        ModelIndex("text", "", "UNAVAILABLE", "2 problems:\n  a"),
        ModelIndex("x"),
    ]
    assert index_as_table(index).splitlines() == [
        "+--------+---------+-------------+-------------+",
        "| Model  | Version | Status      | Reason      |",
        "+--------+---------+-------------+-------------+",
        "| digits | 1       | READY       |             |",
        "| text   | -       | UNAVAILABLE | 2 problems: |",
        "|        |         |             |   a         |",
        "| x      | -       | not loaded  |             |",
        "+--------+---------+-------------+-------------+",
    ]


def test_long_reasons_are_wrapped_to_the_width_of_the_terminal():
    index = [
        ModelIndex(
            "text",
            "1",
            "UNAVAILABLE",
            "1 problem:\n  line 3, column 7: there is no such field as this one",
        )
    ]
    assert index_as_table(index, 70).splitlines() == [
        "+-------+---------+-------------+---------------------------------+",
        "| Model | Version | Status      | Reason                          |",
        "+-------+---------+-------------+---------------------------------+",
        "| text  | 1       | UNAVAILABLE | 1 problem:                      |",
        "|       |         |             |   line 3, column 7: there is no |",
        "|       |         |             |   such field as this one        |",
        "+-------+---------+-------------+---------------------------------+",
    ]


def test_reasons_have_a_minimum_width():
    table = index_as_table(
        [ModelIndex("a" * 60, "1", "UNAVAILABLE", "some words " * 9)], 40
    ).splitlines()
    assert len(table) == 9


def test_the_models_as_data():
    assert index_as_dicts([ModelIndex("m", "1", "UNAVAILABLE", "why")]) == [
        {"name": "m", "version": "1", "state": "UNAVAILABLE", "reason": "why"}
    ]
