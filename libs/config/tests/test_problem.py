from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_config.problem import (
    MAX_LISTED,
    ConfigProblem,
    InvalidConfig,
    ParsedConfig,
    Position,
    Positions,
    child,
    entry,
    parent,
    refuse_problems,
    unknown_name,
)
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types.errors import Code, InvalidArgument


def test_the_text_has_position_key_and_problem() -> None:
    assert (
        str(ConfigProblem("input[0].dims", "is set twice", 3, 5))
        == "line 3, column 5: input[0].dims: is set twice"
    )


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


@pytest.mark.parametrize(
    ("path", "above"),
    [
        ("input[0].dims[1]", "input[0].dims"),
        ("input[0].dims", "input[0]"),
        ("input[0]", "input"),
        ("input", ""),
        ("", ""),
        ('parameters["a.b"].string_value', 'parameters["a.b"]'),
        ('parameters["a[0]"]', "parameters"),
    ],
)
def test_the_parent_is_one_level_up(path: str, above: str) -> None:
    assert parent(path) == above


@given(st.text())
def test_any_map_key_is_one_level(key: str) -> None:
    assert parent(child(entry("parameters", key), "string_value")) == entry("parameters", key)
    assert parent(entry("parameters", key)) == "parameters"


def test_a_numeric_key_is_not_quoted() -> None:
    assert entry("priority_queue_policy", 2) == "priority_queue_policy[2]"


def test_the_nearest_position_is_that_of_the_innermost_known_key() -> None:
    positions = Positions({"input": Position(1, 1), "input[0]": Position(2, 3)})
    assert positions.nearest("input[0].reshape.shape") == (2, 3)
    assert positions.nearest("input[4].name") == (1, 1)
    assert positions.nearest("output[0]") is None


def test_a_similar_name_is_suggested() -> None:
    assert unknown_name("field", "max_batchsize", ["name", "max_batch_size"]) == (
        "unknown field 'max_batchsize'; did you mean 'max_batch_size'?"
    )


def test_case_is_ignored() -> None:
    assert unknown_name("value", "kind_cpu", ["KIND_AUTO", "KIND_CPU"]).endswith(
        "did you mean 'KIND_CPU'?"
    )


def test_a_name_without_its_prefix_is_completed() -> None:
    assert unknown_name("value", "FP32", ["TYPE_FP16", "TYPE_FP32"]).endswith(
        "did you mean 'TYPE_FP32'?"
    )


def test_all_names_are_listed_if_none_is_similar() -> None:
    assert unknown_name("field", "zzz", ["a", "b"]) == "unknown field 'zzz'; valid here: a, b"


def test_a_message_without_fields_has_no_suggestion() -> None:
    assert unknown_name("field", "zzz", []) == "unknown field 'zzz'; no name is valid here"


def test_a_valid_result_returns_its_configuration() -> None:
    config = ModelConfig(name="m")
    assert ParsedConfig(config, Positions(), []).checked("m") is config


def test_a_result_with_problems_raises_them_all() -> None:
    problems = [ConfigProblem("a", "x"), ConfigProblem("b", "y")]
    with pytest.raises(InvalidConfig) as caught:
        ParsedConfig(ModelConfig(), Positions(), problems).checked("m")
    assert caught.value.problems == tuple(problems)
