from __future__ import annotations

import json
import math
import sys
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_config.model_json import (
    MAX_CHARACTERS,
    MAX_NESTING,
    excerpt,
    parse_lenient_json,
    read_config_json,
    scalar_value,
)
from tritonpy_protos.model_config_pb2 import ModelConfig, ModelInput, ModelMetrics

from .config_messages import model_configs

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["name", "input", "dims", "parameters"]), inner)
    ),
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
        (
            b'{"name": "\xff"}',
            "not JSON: 'utf-8' codec can't decode byte 0xff in position 10: invalid start byte",
        ),
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
        "dynamic_batching": {
            "priority_queue_policy": {"x": {}, "1": {"timeout_action": "DELAYED"}}
        },
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


INT32 = ModelConfig.DESCRIPTOR.fields_by_name["max_batch_size"]
BOOL = ModelInput.DESCRIPTOR.fields_by_name["optional"]
ENUM = ModelInput.DESCRIPTOR.fields_by_name["format"]
STRING = ModelInput.DESCRIPTOR.fields_by_name["name"]
DOUBLE = ModelMetrics.MetricControl.HistogramOptions.DESCRIPTOR.fields_by_name["buckets"]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (INT32, 4, 4), (INT32, "-4", -4), (INT32, 4.0, 4), (BOOL, True, True), (ENUM, "FORMAT_NHWC", 1), (ENUM, 1, 1),
        (DOUBLE, 1, 1.0), (DOUBLE, "1.5", 1.5), (DOUBLE, "-Infinity", -math.inf), (STRING, "é", "é"),
    ],
)  # fmt: skip
def test_every_form_of_a_value_is_accepted(
    field: FieldDescriptor, value: object, expected: object
) -> None:
    read = scalar_value(field, value)
    assert read == expected
    assert type(read) is type(expected)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (INT32, 2**31, "2147483648 is out of range, it must be from -2147483648 to 2147483647"),
        (INT32, True, "expected an integer, got true"),
        (INT32, "0x10", 'expected an integer, got "0x10"'),
        (INT32, math.inf, "expected an integer, got Infinity"),
        (BOOL, 1, "expected true or false, got 1"),
        (BOOL, "on", 'expected true or false, got "on"'),
        (DOUBLE, "one", 'expected a number, got "one"'),
        (DOUBLE, False, "expected a number, got false"),
        (DOUBLE, 10**400, f"expected a number, got 1{'0' * 39}…"),
        (ENUM, "NHWC", "unknown value 'NHWC'; did you mean 'FORMAT_NHWC'?"),
        (ENUM, 9, "expected one of FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW, got 9"),
        (ENUM, None, "expected an integer, got null"),
        (STRING, 5, "expected a string, got 5"),
        (STRING, "\ud800", "the string contains half of a surrogate pair"),
    ],
)
def test_an_invalid_value_is_refused_with_the_expected_type(
    field: FieldDescriptor, value: object, expected: str
) -> None:
    with pytest.raises(ValueError) as caught:
        scalar_value(field, value)
    assert str(caught.value) == expected


def test_long_values_are_truncated() -> None:
    assert excerpt(["abc"] * 100) == '["abc", "abc", "abc", "abc", "abc", "abc…'


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_standard_json_keeps_its_meaning(document, ascii_only) -> None:
    assert parse_lenient_json(json.dumps(document, ensure_ascii=ascii_only)) == document


@given(st.text(alphabet="{}[]'\",:\\aut1e.- \n"))
def test_any_text_is_parsed_or_refused_with_a_value_error(text) -> None:
    try:
        parse_lenient_json(text)
    except ValueError:
        return


# Texts that the real Triton accepts, with their values.
@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("{a: 1}", {"a": 1}),
        ("{ $a_1 : 1}", {"$a_1": 1}),
        ("{'a': 'b'}", {"a": "b"}),
        ("""{'a"': "b'"}""", {'a"': "b'"}),
        ('{"a": 1,}', {"a": 1}),
        ("[1, 2,]", [1, 2]),
        ('["x\ny"]', ["x\ny"]),
        (r'["x\qy", "\'", "\v", "\x41", "\0"]', ["xqy", "'", "\v", "x41", "0"]),
        (r"['pyth\u006fn', '\ud83d\ude00']", ["python", "😀"]),
        ("{\v\f a: 1.}", {"a": 1.0}),
        ("[-0, 1e0, 1E2]", [0, 1.0, 100.0]),
    ],
)
def test_texts_that_protobuf_accepts_are_parsed(text, document) -> None:
    assert parse_lenient_json(text) == document


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1,,}', "[1,,]", "[,]", "{,}", "{,a: 1}", '{/* c */ "a": 1}', "{a: 1} // c", "{a: b}", "{a: 0x1}", "{a: 00}", "{a: +1}",
        "{a: .5}", "{a: --1}", "{a: 1x}", "{a: True}", "{a: falsex}", "{a: 1} x", "{}{}", "{a: 1},", "{1: 2}", "{a-b: 1}", "{a.b: 1}",
        "{é: 1}", "{null: 1}", "{true: 1}", "{\xa0a: 1}", "{'a' 1}", "{'a\": 1}", "['a' 'b']", "['a", "{a: 1", "[1", "{a", "foo", "", "  ",
        r"['\u12']", r"['\ud800']", r"['\ud83dx']", "\ufeff{a: 1}", "[NaN]", "[1 2]", "['\\",
    ],
)  # fmt: skip
def test_texts_that_protobuf_refuses_are_refused(text) -> None:
    with pytest.raises(ValueError):
        parse_lenient_json(text)


def test_nesting_and_size_are_limited() -> None:
    assert parse_lenient_json("[" * MAX_NESTING + "]" * MAX_NESTING)
    for text in ("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1), "[" * 100_000, "{a:" * 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_lenient_json(text)
    with pytest.raises(ValueError, match="too long"):
        parse_lenient_json("[" + " " * MAX_CHARACTERS + "]")
    with pytest.raises(ValueError):
        parse_lenient_json("[" + "1" * 10_000 + ",]")


def test_a_configuration_may_be_lenient_json() -> None:
    reading = read_config_json(
        "{backend: 'python', maxBatchSize: 4, input: [{name: 'IN', data_type: 'type_int32', dims: [1,]},],}"
    )
    assert reading.problems == []
    assert (reading.config.backend, reading.config.max_batch_size) == ("python", 4)
    assert (reading.config.input[0].data_type, list(reading.config.input[0].dims)) == (8, [1])
    assert read_config_json(b"{backend: 'python'}").config.backend == "python"


def test_a_problem_in_lenient_json_names_its_key() -> None:
    assert "unknown field 'max_batch_sise'" in str(
        read_config_json("{max_batch_sise: 4,}").problems[0]
    )


def test_an_invalid_text_has_the_position_of_the_first_error() -> None:
    (problem,) = read_config_json("{backend: 'python' x}").problems
    assert (problem.line, problem.column) == (1, 2)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("T", True),
        ("Yes", True),
        ("1", True),
        ("FALSE", False),
        ("n", False),
        ("0", False),
    ],
)
def test_a_boolean_may_be_a_word(text, value) -> None:
    reading = read_config_json(json.dumps({"model_transaction_policy": {"decoupled": text}}))
    assert (reading.problems, reading.config.model_transaction_policy.decoupled) == ([], value)


@pytest.mark.parametrize("text", ["type-int32", "Type_Int32", "8"])
def test_an_enum_value_may_have_another_spelling(text) -> None:
    reading = read_config_json(json.dumps({"input": [{"data_type": text}]}))
    assert (reading.problems, reading.config.input[0].data_type) == ([], 8)
