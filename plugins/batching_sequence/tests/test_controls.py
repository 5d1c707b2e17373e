from __future__ import annotations

import numpy as np
import pytest

from tritonpy import CallbackSink, InferRequest, SequenceInfo
from tritonpy_batching_sequence.controls import Controls
from tritonpy_testing.parse import model_config


def controls_of(*controls, batch=4):
    text = " ".join(
        f'control_input {{ name: "C{index}" control {{ {one} }} }}'
        for index, one in enumerate(controls)
    )
    return Controls(model_config(f"max_batch_size: {batch} sequence_batching {{ {text} }}"))


def request(name, start=False, end=False):
    return InferRequest(
        "m", {}, CallbackSink(lambda *_: None), sequence=SequenceInfo(name, start, end)
    )


SLOTS = [request(1, start=True), None, request(2, end=True), request(3, True, True), request(4)]


def test_a_model_may_have_no_controls():
    assert not controls_of()
    assert controls_of().tensors(SLOTS) == []


@pytest.mark.parametrize(
    ("values", "datatype", "no", "yes"),
    [
        ("int32_false_true: [-5, 7]", "INT32", -5, 7),
        ("fp32_false_true: [-0.5, 2.5]", "FP32", -0.5, 2.5),
        ("bool_false_true: [true, false]", "BOOL", True, False),
    ],
)
def test_flags_have_the_values_of_the_configuration(values, datatype, no, yes):
    kinds = ("START", "END", "READY")
    controls = controls_of(*(f"kind: CONTROL_SEQUENCE_{kind} {values}" for kind in kinds))
    assert controls
    start, end, ready = controls.tensors(SLOTS)
    assert [tensor.name for tensor in (start, end, ready)] == ["C0", "C1", "C2"]
    assert {tensor.datatype for tensor in (start, end, ready)} == {datatype}
    assert start.numpy().tolist() == [[yes], [no], [no], [yes], [no]]
    assert end.numpy().tolist() == [[no], [no], [yes], [yes], [no]]
    assert ready.numpy().tolist() == [[yes], [no], [yes], [yes], [yes]]


@pytest.mark.parametrize(
    ("datatype", "large"),
    [("UINT64", (1 << 64) - 2), ("INT64", -2), ("UINT32", (1 << 32) - 2), ("INT32", -2)],
)
def test_ids_are_truncated_to_the_type_of_their_control(datatype, large):
    (tensor,) = controls_of(f"kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_{datatype}").tensors(
        [request(7), None, request((1 << 64) - 2)]
    )
    assert tensor.datatype == datatype
    assert tensor.numpy().tolist() == [[7], [0], [large]]


def test_ids_may_be_strings():
    (tensor,) = controls_of("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING").tensors(
        [request("ä name"), None]
    )
    assert (tensor.datatype, tensor.shape) == ("BYTES", (2, 1))
    assert tensor.numpy().tolist() == [["ä name".encode()], [b""]]


@pytest.mark.parametrize("batch", [0, 4])
def test_controls_have_a_batch_dimension_if_the_model_batches(batch):
    controls = controls_of(
        "kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1]",
        "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64",
        batch=batch,
    )
    expected = (1, 1) if batch else (1,)
    for tensor in controls.tensors([request(7)]):
        assert (tensor.shape, tensor.numpy().shape) == (expected, expected)
    strings = controls_of("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING", batch=batch)
    assert strings.tensors([request("s")])[0].shape == expected


def test_batches_do_not_share_control_tensors():
    controls = controls_of("kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1]")
    (first,) = controls.tensors([request(1)])
    first.numpy()[:] = 9
    assert np.array_equal(controls.tensors([request(1)])[0].numpy(), [[1]])
