from __future__ import annotations

import torch

from tritonpy_backend_torch.pytorch.output_probe import probe_outputs
from tritonpy_backend_torch.signature import ANY_ROWS, Signature, TensorInfo, TensorSpec

IN = (
    TensorSpec(("a",), TensorInfo("FP32", (-1, 3))),
    TensorSpec(("b",), TensorInfo("INT64", (-1,))),
)
UNKNOWN = Signature(IN, (TensorSpec(("c",)), TensorSpec(("d",))))


def test_outputs_are_determined_by_two_runs_on_zeros():
    found = probe_outputs(UNKNOWN, lambda inputs: [inputs[0][:, :2].half(), inputs[1]], None)
    assert [spec.info for spec in found.outputs] == [
        TensorInfo("FP16", (-1, 2)),
        TensorInfo("INT64", (-1,)),
    ]
    assert found.max_rows == ANY_ROWS


def test_an_output_with_other_rows_prevents_batching():
    found = probe_outputs(
        UNKNOWN, lambda inputs: [torch.cat([inputs[0], inputs[0]]), inputs[1]], None
    )
    assert found.outputs[0].info == TensorInfo("FP32", (-1, 3))
    assert found.max_rows == 0
    found = probe_outputs(UNKNOWN, lambda inputs: [inputs[0].sum(0), inputs[1]], None)
    assert (found.outputs[0].info, found.max_rows) == (TensorInfo("FP32", (3,)), 0)


def test_a_model_that_cannot_run_on_zeros_is_left_as_it_is():
    def fail(inputs):
        raise RuntimeError("out of range")

    assert probe_outputs(UNKNOWN, fail, None) is UNKNOWN


def test_a_complete_signature_is_not_run():
    complete = Signature(IN, IN)
    assert probe_outputs(complete, None, None) is complete
    unknown_inputs = Signature((TensorSpec(("a",)),), (TensorSpec(("b",)),))
    assert probe_outputs(unknown_inputs, None, None) is unknown_inputs


def test_a_type_that_the_protocol_lacks_stays_unknown():
    found = probe_outputs(UNKNOWN, lambda inputs: [inputs[0].to(torch.complex64), inputs[1]], None)
    assert found.outputs[0].info is None
    assert found.max_rows == 0
