from __future__ import annotations

import base64
import json

import pytest

from tritonpy_load_generator.inputs.json_file import read_streams
from tritonpy_load_generator.options import BadUsage
from tritonpy_load_generator.target.metadata import TensorDescription

from .metadata import INTS, TEXT, VARIED, model


@pytest.fixture
def read(tmp_path):
    def read(data, *inputs, given=None):
        path = tmp_path / "data.json"
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        return read_streams(path, model(*inputs), given or {})

    return read


def test_a_list_of_steps_is_one_stream_and_a_list_of_lists_several(read):
    [stream] = read({"data": [{"A": [1, 2, 3]}, {"A": [4, 5, 6]}]}, INTS)
    assert [step[0].as_json() for step in stream] == [[1, 2, 3], [4, 5, 6]]
    streams = read({"data": [[{"A": [1, 2, 3]}], [{"A": [4, 5, 6]}, {"A": [7, 8, 9]}]]}, INTS)
    assert [len(stream) for stream in streams] == [1, 2]


def test_values_may_be_nested_shaped_or_base64(read):
    [[step]] = read(
        {"data": [{"V": {"content": [[1, 2], [3, 4]], "shape": [2, 2]}, "T": ["x", "y"]}]},
        VARIED,
        TEXT,
    )
    assert [(tensor.name, tensor.shape) for tensor in step] == [("V", (2, 2)), ("T", (2,))]
    raw = base64.b64encode(b"\1\0\0\0\2\0\0\0\3\0\0\0").decode()
    for value in ({"b64": raw}, {"content": {"b64": raw}}, {"content": {"b64": raw}, "shape": [3]}):
        [[step]] = read({"data": [{"A": value}]}, INTS)
        assert step[0].as_json() == [1, 2, 3]


def test_the_shape_may_come_from_the_command_line(read):
    [[step]] = read({"data": [{"V": [1, 2, 3, 4]}]}, VARIED, given={"V": (2, 2)})
    assert step[0].shape == (2, 2)


def test_an_optional_input_may_be_missing(read):
    [[step]] = read(
        {"data": [{"A": [1, 2, 3]}]}, INTS, TensorDescription("O", "INT32", (1,), optional=True)
    )
    assert [tensor.name for tensor in step] == ["A"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "no list 'data'"),
        ({"data": []}, "no list 'data'"),
        ({"data": [[]]}, "stream 0 of 'data' is not a list of steps"),
        ({"data": [[{"A": [1, 2, 3]}], 5]}, "stream 1 of 'data' is not a list of steps"),
        ({"data": [{"A": [1, 2, 3]}, {"B": [1]}]}, "stream 0, step 1: input 'A' is missing"),
        ({"data": [{"A": [1, 2]}]}, "takes 3 elements, got 2"),
        ({"data": [{"A": {"shape": [3]}}]}, "neither 'content' nor 'b64'"),
        (
            {"data": [{"A": {"content": [1], "shape": [1]}}]},
            r"the shape \[1\] of input 'A' does not fit",
        ),
        ({"data": [{"A": {"b64": "%"}}]}, "is not base64"),
        ({"data": [5]}, "step 0: it is not an object"),
    ],
)
def test_an_error_names_its_position(read, data, text):
    with pytest.raises(BadUsage, match=text):
        read(data, INTS)
