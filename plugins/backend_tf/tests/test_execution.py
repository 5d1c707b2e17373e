from __future__ import annotations

import numpy as np
import pytest

from tritonpy import Tensor
from tritonpy_backend_tf.execution import Execution, to_scalar_array
from tritonpy_backend_tf.signature import TensorInfo


class Graph:
    """Stands in for a session: returns given values and records the calls."""

    def __init__(self, *values) -> None:
        self.values = values
        self.prepared: list[object] = []
        self.given: list[object] = []

    def make_callable(self, feeds, fetches):
        self.prepared.append((feeds, fetches))

        def run(*arrays):
            self.given = list(arrays)
            return self.values

        return run


def info(datatype, *dims, tensor="t:0"):
    return TensorInfo(datatype, dims, tensor)


ONE = np.arange(3, dtype=np.float32)
INPUTS = {
    "a": info("FP32", 3, tensor="in_a:0"),
    "b": info("BYTES", -1, tensor="in_b:0"),
    "s": info("INT32", tensor="in_s:0"),
}


def tensor(name, array):
    return Tensor.from_numpy(name, array)


def test_numeric_tensors_are_not_copied():
    graph = Graph(ONE)
    outputs = Execution(graph.make_callable, INPUTS, {"y": info("FP32", 3, tensor="out:0")}, {})(
        [tensor("a", ONE)]
    )
    assert graph.prepared == [(["in_a:0"], ["out:0"])]
    assert np.shares_memory(graph.given[0], ONE)
    assert np.shares_memory(outputs["y"].data, ONE)
    assert (outputs["y"].name, outputs["y"].datatype, outputs["y"].shape) == ("y", "FP32", (3,))


def test_strings_are_bytes_in_both_directions():
    graph = Graph(np.array([b"x\0", b""], object))
    execution = Execution(graph.make_callable, INPUTS, {"y": info("BYTES", -1)}, {})
    outputs = execution([tensor("b", np.array([b"\xff", b"b\0"], object))])
    assert graph.given[0].tolist() == [b"\xff", b"b\0"]
    assert outputs["y"].strings() == [b"x\0", b""]


def test_scalars_have_no_dimension_in_the_model_and_one_for_clients():
    graph = Graph(np.float64(4), b"text\0")
    outputs = {"n": info("FP64"), "t": info("BYTES")}
    found = Execution(graph.make_callable, INPUTS, outputs, {"n": (1,), "t": (1, 1)})(
        [tensor("s", np.array([7], np.int32))]
    )
    assert graph.given[0].shape == ()
    assert found["n"].numpy().tolist() == [4]
    assert found["t"].numpy().tolist() == [[b"text\0"]]


def test_each_set_of_inputs_is_prepared_once_in_any_order():
    graph = Graph(ONE)
    execution = Execution(graph.make_callable, INPUTS, {"y": info("FP32", 3)}, {})
    a, s = tensor("a", ONE), tensor("s", np.array([7], np.int32))
    execution([a, s])
    execution([s, a])
    assert graph.given[0].tolist() == ONE.tolist()
    execution([a])
    execution([a])
    assert [feeds for feeds, _ in graph.prepared] == [["in_a:0", "in_s:0"], ["in_a:0"]]


@pytest.mark.parametrize(
    ("value", "datatype"), [(np.int8(3), "INT8"), (np.array(3, np.int8), "INT8"), (b"3", "BYTES")]
)
def test_a_scalar_becomes_an_array_of_its_type(value, datatype):
    array = to_scalar_array(value, datatype, (1,))
    assert array.dtype == (object if datatype == "BYTES" else np.int8)
    assert array.shape == (1,)
