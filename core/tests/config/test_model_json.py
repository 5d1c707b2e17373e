from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.config.model_json import read_config_json
from tritonpy_protos.model_config_pb2 import ModelConfig

from .config_messages import model_configs

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["name", "input", "dims", "parameters"]), inner),
)


def problems(document: Any) -> list[str]:
    return [str(problem) for problem in read_config_json(json.dumps(document)).problems]


@given(model_configs(), st.booleans(), st.booleans(), st.booleans())
def test_the_output_of_protobuf_is_parsed(config, proto_names, defaults, enum_numbers) -> None:
    text = json_format.MessageToJson(
        config,
        preserving_proto_field_name=proto_names,
        always_print_fields_with_no_presence=defaults,
        use_integers_for_enums=enum_numbers,
    )
    reading = read_config_json(text)
    assert reading.problems == []
    assert reading.config == json_format.Parse(text, ModelConfig())


@given(JSON)
def test_any_json_is_parsed_or_has_problems(document: Any) -> None:
    read_config_json(json.dumps(document))


@given(st.text() | st.binary())
def test_any_text_is_parsed_or_has_problems(garbage: str | bytes) -> None:
    read_config_json(garbage)


def test_64_bit_integers_are_numbers_or_strings() -> None:
    reading = read_config_json('{"input": [{"dims": [1, "2", 3.0, "-1"]}]}')
    assert reading.problems == []
    assert reading.config.input[0].dims == [1, 2, 3, -1]


def test_null_means_not_set() -> None:
    reading = read_config_json('{"name": null, "input": null, "response_cache": null}')
    assert reading.problems == []
    assert reading.config == ModelConfig()


def test_a_syntax_error_has_a_position() -> None:
    (problem,) = read_config_json('{"name":\n "m",,}').problems
    assert (problem.line, problem.column) == (2, 6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": NaN}', 'not JSON: NaN is written as a string: "NaN"'),
        (b'{"name": "\xff"}', "not JSON: 'utf-8' codec can't decode byte 0xff in position 10: invalid start byte"),
        ("[" * sys.getrecursionlimit() * 20, "the JSON is nested too deeply"),
    ],
)
def test_invalid_json_is_one_problem(text: str | bytes, expected: str) -> None:
    assert [problem.text for problem in read_config_json(text).problems] == [expected]


def test_all_problems_are_reported_at_once_with_their_keys() -> None:
    document = {
        "max_batchsize": 4,
        "input": [{"dataType": "FP32", "dims": ["1", 2.5, True]}, 7],
        "parameters": {"a.b": {"string_value": 1}, "c": "d"},
        "dynamic_batching": {"priority_queue_policy": {"x": {}, "1": {"timeout_action": "DELAYED"}}},
        "metric_tags": ["a"],
        "output": {},
    }
    assert problems(document) == [
        "max_batchsize: unknown field 'max_batchsize'; did you mean 'max_batch_size'?",
        "input[0].data_type: unknown value 'FP32'; did you mean 'TYPE_FP32'?",
        "input[0].dims[1]: expected an integer, got 2.5",
        "input[0].dims[2]: expected an integer, got true",
        "input[1]: expected an object, got 7",
        'parameters["a.b"].string_value: expected a string, got 1',
        'parameters["c"]: expected an object, got "d"',
        'dynamic_batching.priority_queue_policy["x"]: expected an integer, got "x"',
        "dynamic_batching.priority_queue_policy[1].timeout_action: unknown value 'DELAYED'; did you mean 'DELAY'?",
        'metric_tags: expected an object, got ["a"]',
        "output: expected a list, got {}",
    ]


def test_two_members_of_a_oneof_are_a_problem() -> None:
    assert problems({"dynamic_batching": {}, "sequenceBatching": {}}) == [
        "sequence_batching: cannot be set together with 'dynamic_batching': choose one"
    ]


def test_a_document_that_is_not_an_object_is_a_problem() -> None:
    assert problems([]) == ["expected an object, got []"]
