from __future__ import annotations

import pytest

from tests.conformance.difference import MISSING, Difference, differences

NAN = float("nan")
ANSWER = {
    "0": {
        "status": 200,
        "json": {"outputs": [{"name": "OUT", "data": [1.5, NAN]}, {"name": "B"}]},
        "headers": {},
    }
}


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (1, 2, [Difference("", 1, 2)]),
        (1, 1.0, [Difference("", 1, 1.0)]),
        (1, True, [Difference("", 1, True)]),
        ("a", "a ", [Difference("", "a", "a ")]),
        (None, MISSING, [Difference("", None, MISSING)]),
        ({"a": 1}, {}, [Difference("a", 1, MISSING)]),
        ({}, {"a": 1}, [Difference("a", MISSING, 1)]),
        ({"a": [1, 2]}, {"a": [1]}, [Difference("a", [1, 2], [1])]),
        ({"a": [1, 2]}, {"a": [2, 1]}, [Difference("a/0", 1, 2), Difference("a/1", 2, 1)]),
        ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 2}]}}, [Difference("a/b/0/c", 1, 2)]),
        ([], {}, [Difference("", [], {})]),
        (NAN, 1.0, [Difference("", NAN, 1.0)]),
        (0.1, 0.1000000001, [Difference("", 0.1, 0.1000000001)]),
    ],
)
def test_differences_are_located(one, other, found):
    assert repr(list(differences(one, other))) == repr(found)


def test_equal_answers_have_no_differences():
    assert list(differences(ANSWER, ANSWER)) == []
    assert (
        list(
            differences(
                ANSWER, {"0": {key: ANSWER["0"][key] for key in ("headers", "json", "status")}}
            )
        )
        == []
    )


def test_a_difference_is_printed_with_both_values():
    assert str(Difference("0/status", 200, 500)) == "0/status\n    triton:   200\n    tritonpy: 500"
