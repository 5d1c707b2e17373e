from __future__ import annotations

import numpy as np
import pytest

from tritonpy_worker.api.errors import TritonError, TritonModelException
from tritonpy_worker.api.response import InferenceResponse
from tritonpy_worker.api.tensor import Tensor

A, B = Tensor("A", np.zeros(1)), Tensor("B", np.zeros(2))


def test_a_response_without_arguments_is_empty():
    response = InferenceResponse()
    assert response.output_tensors() == []
    assert not response.has_error()
    assert response.error() is None
    assert response.parameters() == "{}"


@pytest.mark.parametrize("outputs", [[A, B], (A, B)])
def test_outputs_keep_their_order_and_the_list_is_a_copy(outputs):
    response = InferenceResponse(output_tensors=outputs)
    assert response.output_tensors() == [A, B]
    response.output_tensors().clear()
    assert response.output_tensors() == [A, B]


def test_an_error_is_kept():
    error = TritonError("no", TritonError.UNAVAILABLE)
    response = InferenceResponse([], error)
    assert response.has_error()
    assert response.error() is error


def test_parameters_are_json_text():
    given = {"a": 1, "b": "x"}
    response = InferenceResponse(parameters=given)
    given["a"] = 2
    assert response.parameters() == '{"a": 1, "b": "x"}'


def test_invalid_parameters_are_rejected():
    with pytest.raises(TritonModelException, match="Expect parameters values"):
        InferenceResponse(parameters={"a": []})


def test_none_is_not_a_tensor():
    with pytest.raises(
        TritonModelException, match=r"^Output tensor for inference response should not be empty\.$"
    ):
        InferenceResponse([A, None])


@pytest.mark.parametrize(
    "arguments",
    [
        (None,),
        ("A",),
        (5,),
        ([5],),
        ({A},),
        ({A: 1},),
        (iter([A]),),
        ([A.as_numpy()],),
        ([], "x"),
        ([], TritonModelException("x")),
    ],
)
def test_wrong_argument_types_have_tritons_error(arguments):
    with pytest.raises(TypeError) as caught:
        InferenceResponse(*arguments)
    assert str(caught.value).startswith(
        "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
        "    1. c_python_backend_utils.InferenceResponse("
    )


def test_a_received_response_has_its_fields():
    error = TritonError("no")
    response = InferenceResponse.received((A, B), error, {"a": 1, "b": "é"})
    assert response.output_tensors() == [A, B]
    assert response.error() is error
    assert response.parameters() == '{"a":1,"b":"é"}'
    assert InferenceResponse.received((), None, {}).parameters() == "{}"


def test_a_response_that_only_ends_a_request_has_no_parameters():
    assert InferenceResponse.received((), None, None).parameters() == ""


def test_a_response_can_be_restricted_to_requested_outputs():
    response = InferenceResponse([A, B, A], parameters={"a": 1})
    for names in ({"A", "B", "C"}, ("A", "B"), frozenset(("B", "A"))):
        assert response.restricted(names) is response
    less = response.restricted(("B",))
    assert less.output_tensors() == [B]
    assert less.parameters() == response.parameters()
    assert response.output_tensors() == [A, B, A]
    failed = InferenceResponse([A], TritonError("no")).restricted(())
    assert failed.output_tensors() == []
    assert failed.error().message() == "no"


def test_a_received_response_stays_one_when_restricted():
    assert (
        InferenceResponse.received((A,), None, {"a": 1, "b": 2}).restricted(()).parameters()
        == '{"a":1,"b":2}'
    )
