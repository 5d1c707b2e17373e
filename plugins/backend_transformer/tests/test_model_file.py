from __future__ import annotations

import struct

import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.model_file import read_model_file

from .tiny_models import TOKENS


def test_kind_and_shapes_are_read(decoder):
    folder, plain = decoder
    found = read_model_file(folder / "model.bin")
    assert found.kind == "TransformerDecoderSpec"
    assert found.dimension("decoder/embeddings/weight", 0) == len(TOKENS)
    assert found.dimension("decoder/position_encodings/encodings", 0) == 96
    assert found.dimension("nothing", 0) is None
    arrays = {name: value for name, value in plain.weights.items() if value.ndim}
    assert {name: found.weights[name].shape for name in arrays} == {
        name: value.shape for name, value in arrays.items()
    }


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9999])
def test_a_truncated_file_is_rejected(decoder, tmp_path, share):
    data = (decoder[0] / "model.bin").read_bytes()
    path = tmp_path / "model.bin"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InvalidArgument) as caught:
        read_model_file(path)
    assert caught.value.message == (
        f"'{path}' is damaged or truncated ({int(len(data) * share)} bytes): convert or copy the model again"
    )


@pytest.mark.parametrize(
    "data", [b"PK\x03\x04 a zip file, not a model", struct.pack("<I", 99) + b"later"]
)
def test_a_file_of_another_format_is_rejected(tmp_path, data):
    path = tmp_path / "model.bin"
    path.write_bytes(data)
    with pytest.raises(
        InvalidArgument, match="is not a CTranslate2 model, or has an unknown version"
    ):
        read_model_file(path)
