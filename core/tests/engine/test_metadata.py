from __future__ import annotations

import pytest

from tritonpy.api.engine import ModelMetadata, TensorMetadata
from tritonpy.engine.metadata import model_metadata
from tritonpy_testing import model_config

CONFIG = """
    name: "m" backend: "b" max_batch_size: {batch}
    input {{ name: "IN" data_type: TYPE_FP32 dims: [3, -1] reshape {{ shape: [3, -1, 1] }} }}
    input {{ name: "SHAPE" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }}
    output {{ name: "OUT" data_type: TYPE_STRING dims: 1 }} {more}
"""


@pytest.mark.parametrize(("batch", "leading"), [(0, []), (1, [-1]), (8, [-1])])
def test_shapes_are_the_configured_ones_after_the_batch_dimension(batch, leading):
    found = model_metadata(model_config(CONFIG.format(batch=batch, more="")), [1, 10])
    assert found == ModelMetadata(
        name="m",
        versions=["1", "10"],
        platform="b",
        inputs=[TensorMetadata("IN", "FP32", [*leading, 3, -1]), TensorMetadata("SHAPE", "INT32", [*leading, 2])],
        outputs=[TensorMetadata("OUT", "BYTES", [*leading, 1])],
    )


def test_the_platform_takes_precedence_over_the_backend():
    assert model_metadata(model_config(CONFIG.format(batch=0, more='platform: "p"')), []).platform == "p"
