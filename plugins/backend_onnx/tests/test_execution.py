from __future__ import annotations

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import helper

from tritonpy import DTYPES, Tensor, Unsupported
from tritonpy_backend_onnx.execution import (
    ArrayExecution,
    BoundExecution,
    ConvertingExecution,
    create_execution,
)
from tritonpy_backend_onnx.shared_model import OpenSession
from tritonpy_backend_onnx.signature import read_signature

NUMBERS = [
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
]
SHAPES = [(2, 3), (0, 3), (1, 0), (2, 3, 0, 4)]


def opened(path):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return OpenSession(session, read_signature(session), None, onnxruntime.OrtValue)


def values(datatype, shape):
    count = int(np.prod(shape))
    if datatype == "BYTES":
        return np.array(
            [f"é{number}".encode() for number in range(count)] or np.empty(0), object
        ).reshape(shape)
    return np.arange(count).astype(DTYPES[datatype]).reshape(shape)


class OnDevice:
    """A framework's tensor: data that is accessible through DLPack."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("datatype", [*NUMBERS, "BF16", "BYTES"])
@pytest.mark.parametrize("bound", [False, True], ids=["plain", "bound"])
def test_every_datatype_passes_through_an_identity_unchanged(models, datatype, shape, bound):
    run = create_execution(
        opened(models.identity(datatype, [None] * len(shape))), ["OUT"], {}, gpu=bound
    )
    given = Tensor.from_numpy("IN", values(datatype, shape))
    out = run([given])["OUT"]
    assert (out.datatype, out.shape) == (datatype, shape)
    assert out.numpy().tolist() == given.numpy().tolist()


@pytest.mark.parametrize("datatype", ["FP32", "BF16", "BYTES"])
def test_a_scalar_of_the_model_is_one_element_for_clients(models, datatype):
    run = create_execution(
        opened(models.identity(datatype, [])), ["OUT"], {"OUT": (1, 1)}, gpu=False
    )
    given = Tensor.from_numpy("IN", values(datatype, (1,)))
    out = run([given])["OUT"]
    assert out.shape == (1, 1)
    assert out.numpy().ravel().tolist() == given.numpy().tolist()


def test_bytes_that_are_not_text_cannot_come_out_again(models):
    run = create_execution(opened(models.identity("BYTES", [None])), ["OUT"], {}, gpu=False)
    with pytest.raises(UnicodeDecodeError):
        run([Tensor.from_numpy("IN", np.array([b"\xff\xfe"], object))])


def test_the_execution_class_depends_on_the_models_tensors(models):
    kinds = {}
    for datatype, shape in (("INT32", [None]), ("BYTES", [None]), ("INT32", []), ("BF16", [None])):
        kinds[datatype, len(shape)] = type(
            create_execution(opened(models.identity(datatype, shape)), ["OUT"], {}, gpu=False)
        )
    assert kinds == {
        ("INT32", 1): ArrayExecution,
        ("BYTES", 1): ConvertingExecution,
        ("INT32", 0): ConvertingExecution,
        ("BF16", 1): BoundExecution,
    }
    assert (
        type(create_execution(opened(models.add_sub()), ["OUTPUT0"], {}, gpu=True))
        is BoundExecution
    )
    assert (
        type(create_execution(opened(models.identity("BYTES", [None])), ["OUT"], {}, gpu=True))
        is ConvertingExecution
    )


def test_a_model_with_texts_and_bf16_is_refused(models):
    kinds = {"IN": ("BYTES", [None]), "BF": ("BF16", [None])}
    nodes = [
        helper.make_node("Identity", ["IN"], ["OUT"]),
        helper.make_node("Identity", ["BF"], ["BFOUT"]),
    ]
    models.write(nodes, kinds, {"OUT": kinds["IN"], "BFOUT": kinds["BF"]})
    with pytest.raises(Unsupported, match="both BF16 and text"):
        create_execution(opened(models.path), ["OUT"], {}, gpu=False)


def test_device_memory_is_bound_without_a_host_copy(models):
    run = create_execution(opened(models.identity("FP32", [None, 2])), ["OUT"], {}, gpu=True)
    array = np.ones((3, 2), np.float32)
    out = run([Tensor("IN", "FP32", (3, 2), OnDevice(array), device=(2, 0))])["OUT"]
    assert out.numpy().tolist() == array.tolist()


def test_device_memory_comes_to_the_host_for_a_model_on_the_cpu(models):
    run = create_execution(opened(models.identity("FP32", [None, 2])), ["OUT"], {}, gpu=False)
    out = run([Tensor("IN", "FP32", (1, 2), OnDevice(np.ones((1, 2), np.float32)), device=(2, 0))])[
        "OUT"
    ]
    assert out.numpy().tolist() == [[1, 1]]


def test_a_binding_is_cleared_after_a_failure(models):
    run = create_execution(opened(models.identity("BF16", [None, 2])), ["OUT"], {}, gpu=False)
    with pytest.raises(RuntimeError, match="invalid dimensions"):
        run([Tensor.from_numpy("IN", np.ones((1, 3), ml_dtypes.bfloat16))])
    out = run([Tensor.from_numpy("IN", np.ones((1, 2), ml_dtypes.bfloat16))])["OUT"]
    assert out.numpy().tolist() == [[1, 1]]


def test_only_the_named_outputs_are_computed(models):
    run = create_execution(opened(models.add_sub()), ["OUTPUT1"], {}, gpu=False)
    ones = np.ones((1, 16), np.int32)
    assert list(run([Tensor.from_numpy("INPUT0", ones), Tensor.from_numpy("INPUT1", ones)])) == [
        "OUTPUT1"
    ]


def test_an_input_with_a_default_may_be_omitted(models):
    run = create_execution(opened(models.with_default()), ["OUT"], {}, gpu=False)
    given, bias = (Tensor.from_numpy(name, np.ones(2, np.float32)) for name in ("IN", "BIAS"))
    assert run([given])["OUT"].numpy().tolist() == [11, 11]
    assert run([given, bias])["OUT"].numpy().tolist() == [2, 2]
