from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from tritonpy.errors import FailureReason
from tritonpy.model.reshape import Reshape
from tritonpy.model.response_postprocessor import ResponsePostprocessor
from tritonpy.types import InferRequest, InferResponse, OutputSpec, Tensor
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing.recording_sink import RecordingSink

SINK = RecordingSink().sink
RESHAPED = 'max_batch_size: 4 output { name: "OUT" data_type: TYPE_FP32 dims: [2, 2] reshape { shape: [4] } }'


def postprocessor(config: str = "max_batch_size: 4") -> ResponsePostprocessor:
    model = text_format.Parse(config, ModelConfig())
    return ResponsePostprocessor(Reshape.of_outputs(model), {"OUT": ["zero", "one"]}, model.max_batch_size > 0)


def make_response(values: Any) -> InferResponse:
    return InferResponse([Tensor.from_numpy("OUT", np.array(values, np.float32))])


def classifying_request(classes: int) -> InferRequest:
    return InferRequest("m", {}, SINK, outputs={"OUT": OutputSpec("OUT", classification=classes)}, classifies=True)


def test_plain_responses_are_unchanged() -> None:
    responses = [make_response([[1]]), make_response([[2]])]
    assert postprocessor().apply([InferRequest("m", {}, SINK)] * 2, responses) is responses


def test_outputs_get_the_shape_that_clients_know() -> None:
    (response,) = postprocessor(RESHAPED).apply([InferRequest("m", {}, SINK)], [make_response([[1, 2, 3, 4]])])
    assert response.outputs[0].shape == (1, 2, 2)


def test_an_output_with_a_wrong_shape_fails_only_its_own_response() -> None:
    good, bad = postprocessor(RESHAPED).apply(
        [InferRequest("m", {}, SINK, id=each) for each in "ab"],
        [make_response([[1, 2, 3, 4]]), make_response([[1, 2, 3]])],
    )
    assert good.error is None
    assert bad.error is not None
    assert bad.error.message == "tensor 'OUT' has shape [1,3], the configuration's reshape expects [-1,4]"
    assert (bad.id, bad.final, list(bad.outputs), bad.error.reason) == ("b", True, [], FailureReason.BACKEND)


def test_classes_have_their_labels() -> None:
    (response,) = postprocessor().apply([classifying_request(1)], [make_response([[1, 5]])])
    assert response.outputs[0].strings() == [b"5.000000:1:one"]


def test_an_output_that_cannot_be_classified_is_an_error() -> None:
    text = InferResponse([Tensor.from_numpy("OUT", np.array([[b"x"]], np.object_))])
    (response,) = postprocessor().apply([classifying_request(1)], [text])
    assert response.error is not None


class Held:
    """Replaces the regions of a request."""

    def finish(self, request: InferRequest, response: InferResponse) -> InferResponse:
        response.parameters = {"written": True}
        return response

    def outputs(self, response: InferResponse) -> list[Tensor]:
        return list(response.outputs)


@pytest.mark.parametrize("classes", [0, 1])
def test_regions_are_written_last(classes: int) -> None:
    request = classifying_request(classes)
    request.classifies, request.regions = bool(classes), Held()
    (response,) = postprocessor().apply([request], [make_response([[1, 5]])])
    assert response.parameters == {"written": True}
