from __future__ import annotations

import numpy as np

from tritonpy_engine_rpc.host_tensors import input_rows, to_host
from tritonpy_ipc.blocks import Block, BlockInputs
from tritonpy_ipc.signatures import Column, TensorSignature
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import InferRequest, Tensor

CUDA = (2, 0)


class _OnDevice:
    """Host memory that claims to be on a device until it is copied."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_device_tensors_are_copied_and_host_tensors_are_kept() -> None:
    here = Tensor.from_numpy("A", np.arange(3, dtype=np.float32))
    text = Tensor.from_numpy("B", np.array([b"x"], np.object_))
    away = Tensor("C", "FP32", (2,), _OnDevice(np.array([1, 2], np.float32)), CUDA)
    one, two, three = to_host(iter([here, text, away]))
    assert (one, two) == (here, text)
    assert (three.name, three.device, three.data.tolist()) == ("C", (1, 0), [1.0, 2.0])


def test_inputs_in_a_block_stay_there_next_to_others() -> None:
    signature = TensorSignature([Column("A", "FP32", (2,), np.dtype(np.float32))], None)
    block = Block(signature, 2, np.arange(4, dtype=np.float32).view(np.uint8), 0, Tensor)
    placed = [BlockInputs(block, place) for place in range(2)]
    away = {"A": Tensor("A", "FP32", (2,), _OnDevice(np.array([1, 2], np.float32)), CUDA)}
    inputs = [placed[0], away, placed[1]]
    requests = [InferRequest("m", each, RecordingSink().sink) for each in inputs]
    one, two, three = input_rows(requests)
    assert (one is placed[0], three is placed[1]) == (True, True)
    assert [tensor.data.tolist() for tensor in two] == [[1.0, 2.0]]
    assert [row[0].data.tolist() for row in input_rows(requests[1:2])] == [[1.0, 2.0]]
    assert input_rows([]) == []
