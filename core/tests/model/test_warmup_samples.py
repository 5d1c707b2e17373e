from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from tritonpy.model.warmup_samples import warmup_samples
from tritonpy.runners.warmup import WarmupSample
from tritonpy_testing.parse import model_config
from tritonpy_types.errors import Internal, InvalidArgument, TritonError

INPUT = 'input { name: "IN" data_type: TYPE_INT32 dims: 2 }'


def sample(inputs: str, more: str = "", rows: int = 1) -> str:
    return f'model_warmup {{ name: "cold" batch_size: {rows} {inputs} {more} }}'


def value(data: str, name: str = "IN", datatype: str = "TYPE_INT32", dims: str = "2") -> str:
    return f'inputs {{ key: "{name}" value {{ data_type: {datatype} dims: [{dims}] {data} }} }}'


ZERO, RANDOM = "zero_data: true", "random_data: true"


def made(text: str, folder: Path = Path()) -> list[WarmupSample]:
    return warmup_samples(model_config(f'name: "m" {text}'), folder)


def only(text: str, folder: Path = Path()) -> dict[str, np.ndarray]:
    """Return the inputs of the only request of the only sample."""
    (found,) = made(text, folder)
    (inputs,) = found.inputs
    return {name: tensor.numpy() for name, tensor in inputs.items()}


def failure(text: str, folder: Path = Path()) -> TritonError:
    with pytest.raises(TritonError) as raised:
        made(text, folder)
    return raised.value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup" / "data").write_bytes(np.array([7, 8], np.int32).tobytes())
    return tmp_path


def test_zero_data() -> None:
    assert only(INPUT + sample(value(ZERO)))["IN"].tolist() == [0, 0]


@pytest.mark.parametrize("datatype", ["FP16", "FP32", "FP64", "BF16"])
def test_random_floats_are_numbers_from_zero_to_one(datatype: str) -> None:
    text = f'input {{ name: "IN" data_type: TYPE_{datatype} dims: 500 }}'
    numbers = only(text + sample(value(RANDOM, datatype=f"TYPE_{datatype}", dims="500")))[
        "IN"
    ].astype(np.float64)
    assert 0 <= numbers.min() < 0.1
    assert 0.9 < numbers.max() <= 1


@pytest.mark.parametrize("datatype", ["INT8", "UINT16", "INT32", "UINT64", "BOOL"])
def test_random_integers_differ_and_are_the_same_every_time(datatype: str) -> None:
    text = f'input {{ name: "IN" data_type: TYPE_{datatype} dims: 100 }}'
    text += sample(value(RANDOM, datatype=f"TYPE_{datatype}", dims="100"))
    numbers = only(text)["IN"]
    assert len(set(numbers.tolist())) > 1
    assert numbers.tolist() == only(text)["IN"].tolist()
    assert set(np.frombuffer(numbers.tobytes(), np.uint8)) <= (
        {0, 1} if datatype == "BOOL" else set(range(256))
    )


@pytest.mark.parametrize("data", [ZERO, RANDOM])
def test_generated_strings_are_empty(data: str) -> None:
    text = 'input { name: "IN" data_type: TYPE_STRING dims: 2 }' + sample(
        value(data, datatype="TYPE_STRING")
    )
    assert only(text)["IN"].tolist() == [b"", b""]


def test_data_of_a_file(folder: Path) -> None:
    assert only(INPUT + sample(value('input_data_file: "data"')), folder)["IN"].tolist() == [7, 8]


def test_strings_of_a_file_may_have_any_length(folder: Path) -> None:
    (folder / "warmup" / "texts").write_bytes(b"\x03\0\0\0one\0\0\0\0")
    text = 'input { name: "IN" data_type: TYPE_STRING dims: 2 }'
    text += sample(value('input_data_file: "texts"', datatype="TYPE_STRING"))
    assert only(text, folder)["IN"].tolist() == [b"one", b""]


def test_strings_of_any_length_are_checked(folder: Path) -> None:
    (folder / "warmup" / "texts").write_bytes(b"\xff\xff\0\0" + b"x" * 100_000)
    text = 'input { name: "IN" data_type: TYPE_STRING dims: 1 }'
    text += sample(value('input_data_file: "texts"', datatype="TYPE_STRING", dims="1"))
    assert "for inference input 'IN'" in failure(text, folder).message


def test_a_file_that_is_not_there_is_named_with_its_path(folder: Path) -> None:
    error = failure(INPUT + sample(value('input_data_file: "nothing"')), folder)
    assert isinstance(error, Internal)
    assert (
        error.message
        == f"failed to open text file for read {folder}/warmup/nothing: No such file or directory"
    )


def test_a_file_that_is_too_short_is_named_with_both_sizes(folder: Path) -> None:
    (folder / "warmup" / "data").write_bytes(b"1234")
    error = failure(INPUT + sample(value('input_data_file: "data"')), folder)
    assert isinstance(error, InvalidArgument)
    assert error.message == (
        "[request id: <id_unknown>] warmup setting expects 8 bytes, but the data provided from dataonly has 4 bytes"
    )


def test_a_file_that_is_too_long_is_truncated_with_a_warning(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "warmup" / "data").write_bytes(np.array([7, 8, 9], np.int32).tobytes())
    with caplog.at_level(logging.WARNING):
        assert only(INPUT + sample(value('input_data_file: "data"')), folder)["IN"].tolist() == [
            7,
            8,
        ]
    (line,) = caplog.messages
    assert line.startswith(f"warmup setting expects 8 bytes, {folder}/warmup/data has 12")


def test_each_request_of_a_batch_has_one_row_and_all_share_their_data() -> None:
    (found,) = made("max_batch_size: 4 " + INPUT + sample(value(ZERO), rows=3))
    assert [inputs["IN"].shape for inputs in found.inputs] == [(1, 2)] * 3
    assert len({id(inputs["IN"]) for inputs in found.inputs}) == 1


@pytest.mark.parametrize(("given", "count"), [("", 1), ("count: 1", 1), ("count: 5", 5)])
def test_a_sample_is_run_once_unless_it_says_how_often(given: str, count: int) -> None:
    (found,) = made(INPUT + sample(value(ZERO), given))
    assert (found.name, found.count) == ("cold", count)


def test_samples_without_requests_are_left_out() -> None:
    text = INPUT + sample(value(ZERO), rows=0).replace("cold", "none") + sample(value(ZERO))
    assert [found.name for found in made(text)] == ["cold"]


def test_inputs_are_reshaped_as_those_of_clients() -> None:
    text = 'max_batch_size: 2 input { name: "IN" data_type: TYPE_INT32 dims: 2 reshape { shape: [2, 1] } }'
    assert only(text + sample(value(ZERO)))["IN"].shape == (1, 2, 1)


def test_shape_tensors_have_no_row() -> None:
    text = (
        "max_batch_size: 2 "
        + INPUT
        + 'input { name: "SIZE" data_type: TYPE_INT32 dims: 1 is_shape_tensor: true }'
    )
    found = only(text + sample(value(ZERO) + value(ZERO, "SIZE", dims="1")))
    assert (found["IN"].shape, found["SIZE"].shape) == ((1, 2), (1,))


def test_controls_of_a_sequence_are_inputs_too_and_no_sequence_is_needed() -> None:
    text = (
        "max_batch_size: 2 "
        + INPUT
        + """sequence_batching { control_input {
        name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } } }"""
    )
    found = only(text + sample(value(ZERO) + value(ZERO, "ID", "TYPE_STRING", "1")))
    assert list(found) == ["IN", "ID"]
    assert found["ID"].tolist() == [[b""]]


CASES = [
    (value(ZERO, dims="3"), "unexpected shape for input 'IN' for model 'm'. Expected [2], got [3]. "),
    (value(ZERO, datatype="TYPE_FP32"), "inference input 'IN' data-type is 'FP32', but model 'm' expects 'INT32'"),
    (value(ZERO, datatype="TYPE_INVALID"), "inference input 'IN' data-type is '<invalid>', but model 'm' expects 'INT32'"),
    (
        value(ZERO, "MORE"),
        (
            "expected 1 inputs but got 0 inputs for model 'm'. Got input(s) [], but missing required input(s) ['IN']. "
            "Please provide all required input(s)."
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "text"), CASES)
def test_invalid_requests_are_invalid_samples(inputs: str, text: str) -> None:
    assert failure(INPUT + sample(inputs)).message == f"[request id: <id_unknown>] {text}"
