from __future__ import annotations

import pytest

from tritonpy_backend_tf.signature import Signature, TensorInfo, protocol_datatype, type_name


def info(*dims):
    return TensorInfo("FP32", dims, "x:0")


UNKNOWN = TensorInfo("FP32", None, "x:0")


@pytest.mark.parametrize(
    ("inputs", "outputs", "batches"),
    [
        ([info(-1, 3)], [info(-1)], True),
        ([info(2, 3)], [info(-1)], False),
        ([info(-1)], [info(3)], False),
        ([info(-1)], [info()], False),
        ([info(-1)], [UNKNOWN], True),
    ],
)
def test_a_model_can_batch_where_every_first_dimension_is_open(inputs, outputs, batches):
    named = [dict(zip("abc", infos, strict=False)) for infos in (inputs, outputs)]
    assert Signature(*named).can_batch is batches


def test_ragged_and_sparse_outputs_prevent_batching():
    assert not Signature({"a": info(-1)}, {"b": info(-1)}, outputs_have_rows=False).can_batch


def test_candidate_tensors_are_used_only_if_configured():
    signature = Signature(
        {"a": info(1)}, {"b": info(1)}, {"c": info(2)}, {"d": info(2)}, exact=False
    )
    assert list(signature.known_inputs) == ["a", "c"]
    assert list(signature.known_outputs) == ["b", "d"]


def test_types_have_the_names_of_the_protocol():
    assert [protocol_datatype(number) for number in (1, 7, 14, 19, 23)] == [
        "FP32",
        "BYTES",
        "BF16",
        "FP16",
        "UINT64",
    ]
    assert [protocol_datatype(number) for number in (8, 20, 0, 999)] == [None] * 4
    assert [type_name(number) for number in (8, 999)] == ["DT_COMPLEX64", "DT_999"]
