from __future__ import annotations

import math

import pytest
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_config.model_text import config_to_text, read_config_text, scalar_value
from tritonpy_config.problem import InvalidConfig, Position
from tritonpy_config.text_tree import Scalar, parse
from tritonpy_protos import model_config_pb2
from tritonpy_protos.model_config_pb2 import (
    ModelConfig,
    ModelDynamicBatching,
    ModelInput,
    ModelMetrics,
)

from .config_messages import model_configs

WHOLE = """
# a comment
name: "m"
max_batch_size: 0x8
input [
  { name: "IN" data_type: TYPE_FP32, dims: [ 16, -1 ] },
  { name: 'IN' '2' data_type: 13; dims: 1 dims: 010 }
]
output < name: "OUT" optional_is_not_here_on_purpose: 1 >
parameters { key: "a" value: { string_value: "b" } }
parameters: [ { key: "c" value { string_value: "\\303\\251\\x41\\n" } } ]
dynamic_batching { priority_queue_policy { key: 2 value { timeout_action: DELAY } } }
model_transaction_policy: { decoupled: t }
"""
VALID = WHOLE.replace(" optional_is_not_here_on_purpose: 1", "")


def problems(text: str | bytes) -> list[str]:
    return [str(problem) for problem in read_config_text(text).problems]


@given(model_configs(), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_the_output_of_protobuf_is_parsed(config, one_line, short, pointy, utf8) -> None:
    text = text_format.MessageToString(
        config,
        as_one_line=one_line,
        use_short_repeated_primitives=short,
        pointy_brackets=pointy,
        as_utf8=utf8,
    )
    reading = read_config_text(text)
    assert reading.problems == []
    assert reading.config == text_format.Parse(text, ModelConfig())


@given(model_configs())
def test_the_own_output_is_parsed(config) -> None:
    assert read_config_text(config_to_text(config)).config == config


@given(model_configs(), st.data())
def test_a_damaged_text_is_accepted_only_if_protobuf_accepts_it(config, data) -> None:
    text = config_to_text(config)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 3, len(text))))
    text = text[:start] + data.draw(st.text("{}[]<>:,;\"'\\#-. 1aTe\n", max_size=3)) + text[end:]
    reading = read_config_text(text)
    if not reading.problems:
        assert reading.config == text_format.Parse(text, ModelConfig())


@given(st.binary() | st.text())
def test_any_bytes_are_parsed_or_have_problems(garbage: bytes | str) -> None:
    read_config_text(garbage)


def test_every_notation_of_the_format_is_parsed() -> None:
    reading = read_config_text(VALID)
    assert reading.problems == []
    assert reading.config == text_format.Parse(VALID, ModelConfig())
    assert reading.config.input[1].name == "IN2"
    assert reading.config.input[1].dims == [1, 8]
    assert reading.config.parameters["c"].string_value == "éA\n"
    assert reading.checked("m") is reading.config


def test_positions_are_those_of_the_keys_and_of_list_elements() -> None:
    positions = read_config_text(VALID).positions
    assert positions["name"] == Position(3, 1)
    assert positions["input"] == Position(5, 1)
    assert positions["input[1]"] == Position(7, 3)
    assert positions["input[0].dims[1]"] == Position(6, 50)
    assert positions["input[1].dims[1]"] == Position(7, 49)
    assert positions['parameters["a"].string_value'] == Position(10, 32)
    assert positions["dynamic_batching.priority_queue_policy[2]"] == Position(12, 20)
    assert positions.nearest("input[0].reshape.shape") == Position(6, 3)


def test_all_problems_are_reported_at_once_in_the_order_of_the_text() -> None:
    text = 'max_batchsize: 4\ninput [ { data_type: FP32 dims: [ 1, x ] }\n { name: b } ]\nbackend:\nplatform: "p"'
    assert problems(text) == [
        "line 1, column 1: max_batchsize: unknown field 'max_batchsize'; did you mean 'max_batch_size'?",
        "line 2, column 22: input[0].data_type: unknown value 'FP32'; did you mean 'TYPE_FP32'?",
        "line 2, column 38: input[0].dims[1]: expected an integer, got 'x'",
        "line 3, column 2: expected ',' or ']' before '{'",
        'line 3, column 10: input[1].name: expected a string in quotes, got b: write "b"',
        "line 5, column 1: expected a value after 'backend', got 'platform'",
    ]
    assert read_config_text(text).config.platform == "p"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('name: "a" name: "b"', "column 11: name: is set twice"),
        ("response_cache {} response_cache {}", "column 19: response_cache: is set twice"),
        (
            "dynamic_batching {} ensemble_scheduling {}",
            "column 21: ensemble_scheduling: cannot be set together with 'dynamic_batching': choose one",
        ),
        ("max_batch_size: [1]", "column 1: max_batch_size: takes one value, not a list"),
        (
            "max_batch_size: {}",
            "column 17: max_batch_size: expected a value, got a block in braces",
        ),
        ("max_batch_size {}", "column 1: max_batch_size: expected ':' after 'max_batch_size'"),
        (
            "response_cache: true",
            "column 17: response_cache: expected a block: response_cache { … }, got true",
        ),
        ("input: [ 1 ]", "column 10: input[0]: expected a block: input { … }, got 1"),
        ("parameters: 1", "column 13: parameters: expected a block: parameters { … }, got 1"),
        (
            "parameters { key: 1 }",
            'column 19: parameters.key: expected a string in quotes, got 1: write "1"',
        ),
        (
            'parameters { key: "k" val {} }',
            "column 23: parameters[\"k\"].val: unknown field 'val'; did you mean 'value'?",
        ),
    ],
)
def test_an_invalid_field_is_a_problem(text: str, expected: str) -> None:
    assert problems(text) == [f"line 1, {expected}"]


def test_an_invalid_element_keeps_its_index() -> None:
    reading = read_config_text("input { dims: [ x, y ] dims: z }")
    assert [problem.path for problem in reading.problems] == [
        f"input[0].dims[{index}]" for index in range(3)
    ]


def test_a_default_may_be_overwritten_as_in_protobuf() -> None:
    assert read_config_text("max_batch_size: 0 max_batch_size: 4").config.max_batch_size == 4


def test_a_byte_order_mark_and_windows_line_ends_are_accepted() -> None:
    reading = read_config_text(b'\xef\xbb\xbfname: "m"\r\nbackend: "b"\r\n')
    assert reading.problems == []
    assert (reading.config.name, reading.config.backend) == ("m", "b")


def test_bytes_that_are_not_utf8_are_a_problem_with_a_position() -> None:
    assert problems('name: "m"\n # é'.encode() + b"\xff") == [
        "line 2, column 5: the text is not UTF-8"
    ]


def test_checked_raises_all_problems_with_the_source() -> None:
    with pytest.raises(
        InvalidConfig,
        match=r"config.pbtxt of model 'm' has 1 problem:\n  line 1, column 1: nam: unkn",
    ):
        read_config_text('nam: "m"').checked("config.pbtxt of model 'm'")


def test_only_set_fields_are_written() -> None:
    config = ModelConfig(name="é", input=[model_config_pb2.ModelInput(name="x", dims=[-1])])
    assert config_to_text(config) == 'name: "é"\ninput {\n  name: "x"\n  dims: -1\n}\n'


INT32 = ModelConfig.DESCRIPTOR.fields_by_name["max_batch_size"]
UINT64 = ModelDynamicBatching.DESCRIPTOR.fields_by_name["priority_levels"]
BOOL = ModelInput.DESCRIPTOR.fields_by_name["optional"]
ENUM = ModelInput.DESCRIPTOR.fields_by_name["format"]
STRING = ModelInput.DESCRIPTOR.fields_by_name["name"]
DOUBLE = ModelMetrics.MetricControl.HistogramOptions.DESCRIPTOR.fields_by_name["buckets"]


def value(field: FieldDescriptor, text: str):
    (read,), problems = parse(f"x: {text}")
    assert not problems
    assert isinstance(read.values[0], Scalar)
    return scalar_value(field, read.values[0])


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        (INT32, "-12", -12), (INT32, "0x1f", 31), (INT32, "-0x1F", -31), (INT32, "017", 15), (INT32, "0", 0),
        (UINT64, "18446744073709551615", 2**64 - 1),
        (BOOL, "true", True), (BOOL, "f", False), (BOOL, "1", True),
        (ENUM, "FORMAT_NCHW", 2), (ENUM, "1", 1),
        (DOUBLE, "1.5f", 1.5), (DOUBLE, ".5", 0.5), (DOUBLE, "2", 2.0), (DOUBLE, "1e-7", 1e-7),
        (DOUBLE, "inf", math.inf), (DOUBLE, "-Infinity", -math.inf), (DOUBLE, "inff", math.inf),
        (STRING, r'"\a\b\f\n\r\t\v\\\'\"\?"', "\a\b\f\n\r\t\v\\'\"?"),
        (STRING, r"'\x41\101\u00e9\U0001F600'", "AAé😀"), (STRING, r'"\xc3" "\xa9"', "é"),
    ],
)  # fmt: skip
def test_every_notation_of_a_value_is_accepted(
    field: FieldDescriptor, text: str, expected: object
) -> None:
    assert value(field, text) == expected


@pytest.mark.parametrize("text", ["nan", "-NaN", "nanf"])
def test_nan_is_accepted(text: str) -> None:
    assert math.isnan(value(DOUBLE, text))


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        (
            INT32,
            "2147483648",
            "2147483648 is out of range, it must be from -2147483648 to 2147483647",
        ),
        (UINT64, "-1", "-1 is out of range, it must be from 0 to 18446744073709551615"),
        (INT32, "1.0", "expected an integer, got '1.0'"),
        (INT32, "089", "expected an integer, got '089'"),
        (INT32, "1_0", "expected an integer, got '1_0'"),
        (INT32, '"4"', 'expected an integer, got "4"'),
        (INT32, "9" * 5000, f"expected an integer, got '{'9' * 40}…'"),
        (BOOL, "yes", "expected true or false, got 'yes'"),
        (BOOL, "2", "expected true or false, got '2'"),
        (DOUBLE, "one", "expected a number, got 'one'"),
        (DOUBLE, "00.5", "expected a number, got '00.5'"),
        (DOUBLE, '"1"', 'expected a number, got "1"'),
        (ENUM, "FORMAT_NCWH", "unknown value 'FORMAT_NCWH'; did you mean 'FORMAT_NCHW'?"),
        (
            ENUM,
            "9",
            "there is no value with number 9; valid here: FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW",
        ),
        (
            ENUM,
            '"FORMAT_NCHW"',
            'expected one of FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW without quotes, got "FORMAT_NCHW"',
        ),
        (STRING, "abc", 'expected a string in quotes, got abc: write "abc"'),
        (STRING, r'"\q"', r"\q is not an escape sequence; write \\ for a backslash"),
        (STRING, '"\\é"', r"\é is not an escape sequence; write \\ for a backslash"),
        (STRING, r'"\ud800"', r"\ud800 is not an escape sequence; write \\ for a backslash"),
        (STRING, r'"\400"', r"\400 is not an escape sequence; write \\ for a backslash"),
        (STRING, r'"\xff"', r'the string is not UTF-8 after its escapes are decoded: "\xff"'),
    ],
)
def test_an_invalid_value_is_refused_with_the_expected_type(
    field: FieldDescriptor, text: str, expected: str
) -> None:
    with pytest.raises(ValueError) as caught:
        value(field, text)
    assert str(caught.value) == expected


@given(st.floats(allow_nan=False))
def test_numbers_are_parsed_exactly(number: float) -> None:
    assert value(DOUBLE, repr(number)) == number
