from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tritonpy import Internal, InvalidArgument, Tensor, TritonError
from tritonpy_batching_sequence.initial_state import initial_state
from tritonpy_testing import model_config


def state(
    initial: str = "",
    datatype: str = "FP32",
    dims: str = "2",
    batched: bool = True,
    folder: Path = Path(),
) -> Tensor:
    text = f'state {{ input_name: "S" output_name: "T" data_type: TYPE_{datatype} dims: [{dims}] {initial} }}'
    config = model_config(f"sequence_batching {{ {text} }}")
    return initial_state(config.sequence_batching.state[0], batched, folder)


def given(data: str, datatype: str = "FP32", dims: str = "2") -> str:
    return f'initial_state {{ name: "i" data_type: TYPE_{datatype} dims: [{dims}] {data} }}'


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "initial_state").mkdir()
    (tmp_path / "initial_state" / "numbers").write_bytes(
        np.array([1.5, 2.5, 3.5], np.float32).tobytes()
    )
    (tmp_path / "initial_state" / "texts").write_bytes(b"\x01\x00\x00\x00a\x02\x00\x00\x00bc")
    (tmp_path / "secret").write_bytes(bytes(100))
    return tmp_path


def test_the_default_is_zeros_with_size_1_for_variable_dimensions() -> None:
    tensor = state(dims="2, -1, 3")
    assert (tensor.name, tensor.datatype, tensor.shape) == ("S", "FP32", (1, 2, 1, 3))
    assert not tensor.numpy().any()


def test_a_model_without_batches_has_no_row() -> None:
    assert state(batched=False).shape == (2,)


def test_string_states_begin_empty() -> None:
    assert state(datatype="STRING", dims="2, -1").numpy().tolist() == [[[b""], [b""]]]


def test_zero_data_has_the_configured_shape() -> None:
    tensor = state(given("zero_data: true", dims="3"), dims="-1")
    assert tensor.numpy().tolist() == [[0, 0, 0]]


def test_a_file_has_the_values_row_by_row(model: Path) -> None:
    tensor = state(given('data_file: "numbers"', dims="3"), dims="-1", folder=model)
    assert tensor.numpy().tolist() == [[1.5, 2.5, 3.5]]


def test_surplus_bytes_of_a_file_are_ignored(model: Path) -> None:
    assert state(given('data_file: "numbers"'), folder=model, batched=False).numpy().tolist() == [
        1.5,
        2.5,
    ]


def test_a_file_of_strings_is_in_wire_format(model: Path) -> None:
    tensor = state(given('data_file: "texts"', "STRING"), "STRING", folder=model)
    assert tensor.numpy().tolist() == [[b"a", b"bc"]]


@pytest.mark.parametrize(
    ("data", "datatype", "dims", "kind", "text"),
    [
        (
            "",
            "FP32",
            "2",
            InvalidArgument,
            "initial_state setting expects state'S' to have state_data set",
        ),
        (
            'data_file: "numbers"',
            "FP32",
            "4",
            InvalidArgument,
            "initial_state setting expects 16 bytes, but the data provided from numbersonly has 12 bytes.",
        ),
        (
            'data_file: "texts"',
            "STRING",
            "3",
            InvalidArgument,
            "initial_state setting expects 3 strings, texts has 2",
        ),
        ('data_file: "numbers"', "STRING", "3", InvalidArgument, "incomplete string data"),
        (
            'data_file: "none"',
            "FP32",
            "2",
            Internal,
            "failed to open text file for read .*/initial_state/none: No such file",
        ),
        (
            'data_file: "../../secret"',
            "FP32",
            "2",
            InvalidArgument,
            "'../../secret' is outside the model's folder",
        ),
        (
            'data_file: "/dev/zero"',
            "FP32",
            "2",
            Internal,
            "failed to open text file for read .*/initial_state/dev/zero",
        ),
    ],
)
def test_invalid_initial_states_are_rejected(
    model: Path, data: str, datatype: str, dims: str, kind: type[TritonError], text: str
) -> None:
    with pytest.raises(kind, match=text):
        state(given(data, datatype, dims), datatype, "-1", folder=model)
