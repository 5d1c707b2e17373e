from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tritonpy import SequenceInfo, StartupError
from tritonpy_backend_python.debug.request_file import FileRequest, read_request


def given(
    name: str = "IN", datatype: str = "INT32", shape: Any = (2,), **more: Any
) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(shape), **more}


def read(
    folder: Path, *inputs: dict[str, Any], binary: bytes | None = None, **more: Any
) -> FileRequest:
    header = json.dumps({"inputs": inputs, **more}).encode()
    file = folder / "request.json"
    file.write_bytes(header + (binary or b""))
    return read_request(file, None if binary is None else len(header))


@pytest.mark.parametrize(
    ("datatype", "data", "expected"),
    [
        ("INT32", [1, 2], [1, 2]),
        ("BOOL", [True, False], [True, False]),
        ("FP32", [0.5, 2], [0.5, 2.0]),
        ("FP16", [0.5, -1], [0.5, -1.0]),
        ("UINT64", [2**63, 0], [2**63, 0]),
        ("BF16", [1.5, 2], [1.5, 2.0]),
        ("BYTES", ["a", "ü"], [b"a", "ü".encode()]),
    ],
)
def test_values_are_converted_to_their_datatype(
    tmp_path: Path, datatype: str, data: list[Any], expected: list[Any]
) -> None:
    tensor = read(tmp_path, given(datatype=datatype, data=data)).inputs["IN"]
    assert (tensor.datatype, tensor.shape, tensor.numpy().tolist()) == (datatype, (2,), expected)
    if datatype == "BF16":
        assert tensor.data.dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("data", [[1, 2, 3, 4], [[1, 2], [3, 4]], [[[1], [2]], [[3], [4]]]])
def test_values_may_be_nested_or_flat(tmp_path: Path, data: Any) -> None:
    assert read(tmp_path, given(shape=(2, 2), data=data)).inputs["IN"].numpy().tolist() == [
        [1, 2],
        [3, 4],
    ]


def test_tensors_may_follow_in_binary_form(tmp_path: Path) -> None:
    numbers, strings = np.array([1, 2], np.int32).tobytes(), b"\x01\x00\x00\x00a\x00\x00\x00\x00"
    request = read(
        tmp_path,
        given(parameters={"binary_data_size": len(numbers)}),
        given("MORE", data=[3, 4]),
        given("WORDS", "BYTES", parameters={"binary_data_size": len(strings)}),
        binary=numbers + strings,
    )
    assert {name: tensor.numpy().tolist() for name, tensor in request.inputs.items()} == {
        "IN": [1, 2], "MORE": [3, 4], "WORDS": [b"a", b""],
    }  # fmt: skip


def test_all_fields_of_a_request_are_read(tmp_path: Path) -> None:
    parameters = {
        "sequence_id": 7,
        "sequence_start": True,
        "priority": 2,
        "timeout": 5,
        "binary_data_output": True,
        "own": "x",
    }
    outputs = [
        {"name": "A"},
        {"name": "B", "parameters": {"classification": 3, "binary_data": True}},
    ]
    request = read(tmp_path, given(data=[1, 2]), id="42", parameters=parameters, outputs=outputs)
    assert (request.id, request.priority, request.timeout_us, request.parameters) == (
        "42",
        2,
        5,
        {"own": "x"},
    )
    assert request.sequence == SequenceInfo(7, start=True)
    assert request.outputs is not None
    assert {name: spec.classification for name, spec in request.outputs.items()} == {"A": 0, "B": 3}
    assert read(tmp_path, given(data=[1, 2])).outputs is None


@pytest.mark.parametrize(
    ("inputs", "binary", "text"),
    [
        ([given(data=[1])], None, r"has 1 elements, but its shape \[2\] needs 2"),
        ([given(data=[1, "a"])], None, "input 'IN' cannot be converted to INT32"),
        ([given(data=[1, 2**40])], None, "input 'IN' cannot be converted to INT32"),
        ([given(datatype="BYTES", data=["a", 1])], None, "so its elements must be strings"),
        ([given(datatype="INT33", data=[1, 2])], None, "unknown datatype 'INT33'"),
        ([given()], None, "neither 'data' nor a 'binary_data_size'; .*--header-length"),
        (
            [given(parameters={"binary_data_size": 8})],
            b"1234",
            "needs 8 bytes after the JSON text, 4 are left",
        ),
        ([given(data=[1, 2])], b"1234", "4 bytes after the JSON text belong to no input"),
        ([{"name": "IN"}], None, "missing required field `shape`"),
    ],
)
def test_invalid_inputs_are_errors(
    tmp_path: Path, inputs: list[Any], binary: bytes | None, text: str
) -> None:
    with pytest.raises(StartupError, match=text):
        read(tmp_path, *inputs, binary=binary)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"inputs": 3}', '{"inputs": [], "id": 3}']
)
def test_an_invalid_body_is_an_error(tmp_path: Path, content: str) -> None:
    file = tmp_path / "request.json"
    file.write_text(content)
    with pytest.raises(StartupError, match="is not an inference request"):
        read_request(file, None)


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="cannot be read: Is a directory"):
        read_request(tmp_path, None)
