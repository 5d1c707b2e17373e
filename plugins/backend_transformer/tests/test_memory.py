from __future__ import annotations

import pytest

from tritonpy_backend_transformer.memory import weight_bytes
from tritonpy_backend_transformer.model_file import ModelFile, Weight, read_model_file

FILE = ModelFile(
    "TransformerDecoderSpec",
    {
        "decoder/layer_0/linear_0/weight": Weight((6, 4), 4, is_float=True),
        "decoder/layer_0/linear_0/bias": Weight((6,), 4, is_float=True),
        "decoder/num_heads": Weight((), 2, is_float=False),
        "decoder/projection/weight": Weight((6, 4), 0, is_float=False),
    },
)


@pytest.mark.parametrize(
    ("compute_type", "size"),
    [
        ("float32", 96 + 24 + 2),
        ("float16", 48 + 12 + 2),
        ("bfloat16", 48 + 12 + 2),
        ("int8_float32", 24 + 24 + 24 + 2),
        ("int8_float16", 24 + 24 + 12 + 2),
        ("int16", 48 + 24 + 2),
    ],
)
def test_the_size_of_weights_depends_on_the_compute_type(compute_type, size):
    assert weight_bytes(FILE, compute_type) == size


def test_unconverted_weights_have_the_size_in_the_file(decoder):
    path = decoder[0] / "model.bin"
    found = weight_bytes(read_model_file(path), "float32")
    assert 0.95 * path.stat().st_size < found < path.stat().st_size
