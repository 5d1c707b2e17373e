from __future__ import annotations

import openvino
import pytest
from openvino import opset13 as ops

from tritonpy_backend_openvino.output_aliases import find_output_aliases


def found(models):
    compiled = openvino.Core().compile_model(models.path, "CPU")
    return find_output_aliases(openvino, compiled.create_infer_request(), compiled)


@pytest.mark.parametrize("dims", [[-1, 2], [3, 2], [openvino.Dimension(2, 8), 2], []])
@pytest.mark.parametrize("datatype", ["FP32", "BF16", "BYTES", "BOOL"])
def test_an_input_under_another_name_is_found(models, datatype, dims):
    models.same(datatype, dims)
    assert found(models) == {0: 0}


def test_a_computed_output_is_not_an_alias(models):
    models.copied("FP32", [-1, 2])
    assert found(models) == {}


def test_aliases_map_to_the_right_inputs(models):
    nodes = [
        models.parameter(name, kind, [-1, 2])
        for name, kind in (("A", "FP32"), ("B", "FP32"), ("C", "BYTES"))
    ]
    made = [
        models.result("SUM", ops.add(nodes[0], nodes[1])),
        ops.result(nodes[1]),
        ops.result(nodes[2]),
        ops.result(nodes[0]),
    ]
    models.save(made, nodes)
    assert found(models) == {1: 1, 2: 2, 3: 0}
