from __future__ import annotations

import numpy as np
import pytest

from tritonpy.errors import Code, Internal, InvalidArgument, NotFound
from tritonpy.runners.model_calls import check_model_call, refused_model_call
from tritonpy.types import InferRequest, Tensor
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import RecordingSink

PLAIN, DECOUPLED = ModelConfig(), ModelConfig()
DECOUPLED.model_transaction_policy.decoupled = True
IN = Tensor.from_numpy("IN", np.zeros(1, np.float32))


def call(accepts_decoupled=False):
    return InferRequest("m", {"IN": IN}, RecordingSink().sink, 3, "7", accepts_decoupled=accepts_decoupled)


def test_a_valid_call_passes():
    check_model_call(call(), [IN], lambda name, version: PLAIN if (name, version) == ("m", 3) else None)
    check_model_call(call(accepts_decoupled=True), [IN], lambda *_: DECOUPLED)


def test_a_call_to_a_missing_model_fails_as_not_ready():
    def find(name, version):
        raise NotFound("nowhere")

    with pytest.raises(Internal, match="Model 'm' is not ready"):
        check_model_call(call(), [IN], find)


def test_a_decoupled_model_needs_a_caller_that_accepts_any_number_of_responses():
    with pytest.raises(Internal, match="Please use 'decoupled=True' argument"):
        check_model_call(call(), [IN], lambda *_: DECOUPLED)


def test_a_duplicate_input_is_named():
    with pytest.raises(InvalidArgument) as refused:
        check_model_call(call(), [IN, IN], lambda *_: PLAIN)
    assert refused.value.message == "[request id: 7] input 'IN' already exists in request"


def test_a_refusal_names_the_model_whatever_its_code_was():
    refusal = refused_model_call("m", InvalidArgument("no good"))
    assert (refusal.code, refusal.message) == (
        Code.INTERNAL,
        "Model m - Error when running inference: no good",
    )
