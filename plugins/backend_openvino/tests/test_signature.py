from __future__ import annotations

import re

import openvino
import pytest
from openvino import opset13 as ops

from tritonpy import DATATYPES, Unsupported
from tritonpy_backend_openvino.signature import (
    Signature,
    TensorInfo,
    read_signature,
    shortest_name,
    with_aliases,
)


def read(path):
    return read_signature(openvino.Core().read_model(path))


@pytest.mark.parametrize("datatype", DATATYPES)
def test_every_datatype_of_the_protocol_is_known(models, datatype):
    signature = read(models.same(datatype, [-1, 3]))
    assert (signature.inputs["IN"].datatype, signature.inputs["IN"].dims) == (datatype, (-1, 3))
    assert signature.outputs["IN"].datatype == datatype
    assert signature.can_batch


def test_dimensions_and_rank_may_be_dynamic(models):
    assert read(models.copied("FP32", [-1, 2])).inputs["IN"].dims == (-1, 2)
    models.map("FP32", [openvino.Dimension(1, 8), 2], ops.relu)
    assert read(models.path).inputs["IN"].dims == (-1, 2)
    assert read(models.map("FP32", None, ops.relu)).inputs["IN"].dims is None
    assert read(models.copied("FP32", [])).inputs["IN"].dims == ()


def test_an_unsupported_type_is_rejected():
    node = ops.parameter(openvino.PartialShape([2]), openvino.Type.i4)
    node.output(0).set_names({"IN"})
    with pytest.raises(
        Unsupported, match="the element type of I/O 'IN' is i4, which the protocol does not support"
    ):
        read_signature(openvino.Model([ops.result(node)], [node]))


def test_tensors_without_names_are_counted(models):
    nodes = [models.parameter(name, "FP32", [2]) for name in "AB"]
    path = models.save([ops.result(ops.relu(node)) for node in nodes], nodes)
    path.write_text(re.sub(r' (output_)?names="[^"]*"', "", path.read_text()))
    signature = read(path)
    assert (list(signature.inputs), list(signature.outputs)) == (
        ["INPUT__0", "INPUT__1"],
        ["OUTPUT__0", "OUTPUT__1"],
    )


@pytest.mark.parametrize(
    ("names", "name"),
    [(["x:0", "x"], "x"), (["long_name", "x:0"], "long_name"), (["bb", "a", "b"], "a"), ([], "")],
)
def test_the_shortest_name_is_used(names, name):
    assert shortest_name(names) == name


@pytest.mark.parametrize(
    ("layout", "dims", "batches"),
    [
        ("", (-1, 2), True), ("", (1, 2), False), ("", (), False), ("", None, False), ("[N,C,H,W]", (1, 3, 2, 2), True),
        ("[N,...]", (4, 2), True), ("[N]", (1,), True), ("[C,H,W]", (-1, 2, 2), False), ("[C,N]", (3, -1), False),
    ],
)  # fmt: skip
def test_the_first_dimension_is_the_batch_by_layout_or_if_dynamic(layout, dims, batches):
    assert TensorInfo(0, "FP32", dims, layout=layout).batches == batches


def test_the_layout_is_read_from_the_model(models):
    signature = read(models.map("FP32", [1, 3, 4, 4], ops.relu, "NCHW"))
    assert (signature.inputs["IN"].layout, signature.outputs["OUT"].layout) == (
        "[N,C,H,W]",
        "[N,C,H,W]",
    )
    assert signature.can_batch


def test_one_tensor_without_a_batch_prevents_batching():
    both = {"A": TensorInfo(0, "FP32", (-1, 2)), "B": TensorInfo(1, "FP32", (2,))}
    assert not Signature(both, {}).can_batch


def test_a_tensor_is_found_by_every_name():
    info = TensorInfo(0, "FP32", (), frozenset({"x", "x:0"}))
    assert with_aliases({"x": info}) == {"x": info, "x:0": info}
