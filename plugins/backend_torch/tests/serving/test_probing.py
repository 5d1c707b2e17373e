from __future__ import annotations

import torch

from tritonpy_backend_torch.serving.probing import with_outputs
from tritonpy_backend_torch.signature import ANY_ROWS, Place, Signature, TensorInfo

IN = (Place(("a",), TensorInfo("FP32", (-1, 3))), Place(("b",), TensorInfo("INT64", (-1,))))
UNKNOWN = Signature(IN, (Place(("c",)), Place(("d",))))


def test_outputs_are_what_two_runs_on_zeros_give():
    found = with_outputs(UNKNOWN, lambda inputs: [inputs[0][:, :2].half(), inputs[1]], None)
    assert [place.info for place in found.outputs] == [TensorInfo("FP16", (-1, 2)), TensorInfo("INT64", (-1,))]
    assert found.most_rows == ANY_ROWS


def test_rows_that_become_others_are_no_batch():
    found = with_outputs(UNKNOWN, lambda inputs: [torch.cat([inputs[0], inputs[0]]), inputs[1]], None)
    assert found.outputs[0].info == TensorInfo("FP32", (-1, 3))
    assert found.most_rows == 0
    found = with_outputs(UNKNOWN, lambda inputs: [inputs[0].sum(0), inputs[1]], None)
    assert (found.outputs[0].info, found.most_rows) == (TensorInfo("FP32", (3,)), 0)


def test_a_model_that_cannot_run_on_zeros_is_left_as_it_is():
    def fail(inputs):
        raise RuntimeError("out of range")

    assert with_outputs(UNKNOWN, fail, None) is UNKNOWN


def test_a_complete_signature_is_not_run():
    complete = Signature(IN, IN)
    assert with_outputs(complete, None, None) is complete
    unknown_inputs = Signature((Place(("a",)),), (Place(("b",)),))
    assert with_outputs(unknown_inputs, None, None) is unknown_inputs


def test_a_type_that_the_protocol_lacks_stays_unknown():
    found = with_outputs(UNKNOWN, lambda inputs: [inputs[0].to(torch.complex64), inputs[1]], None)
    assert found.outputs[0].info is None
    assert found.most_rows == 0
