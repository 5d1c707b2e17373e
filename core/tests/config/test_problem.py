from __future__ import annotations

import pytest

from tritonpy.config.problem import MAX_LISTED, ConfigProblem, InvalidConfig, refuse_problems
from tritonpy.errors import Code, InvalidArgument


def test_the_text_has_position_key_and_problem() -> None:
    assert str(ConfigProblem("input[0].dims", "is set twice", 3, 5)) == "line 3, column 5: input[0].dims: is set twice"


def test_a_missing_position_or_key_is_omitted() -> None:
    assert str(ConfigProblem("name", "is wrong")) == "name: is wrong"
    assert str(ConfigProblem("", "is wrong")) == "is wrong"


def test_all_problems_are_raised_as_one_error() -> None:
    problems = [ConfigProblem("a", "is bad", 1, 2), ConfigProblem("b", "is worse")]
    with pytest.raises(InvalidArgument) as caught:
        refuse_problems(problems, "config.pbtxt of model 'm'")
    assert caught.value.code is Code.INVALID_ARG
    assert str(caught.value) == (
        "config.pbtxt of model 'm' has 2 problems:\n  line 1, column 2: a: is bad\n  b: is worse"
    )
    assert isinstance(caught.value, InvalidConfig)
    assert caught.value.problems == tuple(problems)
    assert caught.value.source == "config.pbtxt of model 'm'"


def test_no_problems_raise_nothing() -> None:
    refuse_problems([], "m")


def test_a_long_list_is_truncated_only_in_the_text() -> None:
    error = InvalidConfig([ConfigProblem("a", "is bad")] * (MAX_LISTED + 7), "m")
    assert str(error).endswith("\n  and 7 more")
    assert len(str(error).splitlines()) == MAX_LISTED + 2
    assert len(error.problems) == MAX_LISTED + 7


def test_a_request_id_can_be_added() -> None:
    error = InvalidConfig([ConfigProblem("a", "is bad")], "m").with_request_id("7")
    assert str(error) == "[request id: 7] m has 1 problem:\n  a: is bad"
