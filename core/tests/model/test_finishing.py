from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from tritonpy.errors import FailureReason
from tritonpy.model.finishing import Finishing
from tritonpy.model.reshape import Reshape
from tritonpy.testing.witness import Witness
from tritonpy.types import InferRequest, InferResponse, OutputSpec, Tensor
from tritonpy_protos.model_config_pb2 import ModelConfig

SINK = Witness().sink
RESHAPED = 'max_batch_size: 4 output { name: "OUT" data_type: TYPE_FP32 dims: [2, 2] reshape { shape: [4] } }'


def finishing(config: str = "max_batch_size: 4") -> Finishing:
    model = text_format.Parse(config, ModelConfig())
    return Finishing(Reshape.of_outputs(model), {"OUT": ["zero", "one"]}, model.max_batch_size > 0)


def answer(values: Any) -> InferResponse:
    return InferResponse([Tensor.from_numpy("OUT", np.array(values, np.float32))])


def asking(classes: int) -> InferRequest:
    return InferRequest("m", {}, SINK, outputs={"OUT": OutputSpec("OUT", classification=classes)}, classifies=True)


def test_plain_answers_pass_as_they_are() -> None:
    responses = [answer([[1]]), answer([[2]])]
    assert finishing().apply([InferRequest("m", {}, SINK)] * 2, responses) is responses


def test_outputs_get_the_shape_that_clients_know() -> None:
    (response,) = finishing(RESHAPED).apply([InferRequest("m", {}, SINK)], [answer([[1, 2, 3, 4]])])
    assert response.outputs[0].shape == (1, 2, 2)


def test_an_output_that_cannot_have_that_shape_fails_its_own_answer_alone() -> None:
    good, bad = finishing(RESHAPED).apply(
        [InferRequest("m", {}, SINK, id=each) for each in "ab"], [answer([[1, 2, 3, 4]]), answer([[1, 2, 3]])]
    )
    assert good.error is None
    assert bad.error is not None
    assert bad.error.message == "tensor 'OUT' has shape [1,3], the configuration's reshape expects [-1,4]"
    assert (bad.id, bad.final, list(bad.outputs), bad.error.reason) == ("b", True, [], FailureReason.BACKEND)


def test_classes_have_their_labels() -> None:
    (response,) = finishing().apply([asking(1)], [answer([[1, 5]])])
    assert response.outputs[0].strings() == [b"5.000000:1:one"]


def test_what_cannot_be_classified_is_an_error() -> None:
    text = InferResponse([Tensor.from_numpy("OUT", np.array([[b"x"]], np.object_))])
    (response,) = finishing().apply([asking(1)], [text])
    assert response.error is not None


class Held:
    """Stands in for the regions of a request."""

    def finish(self, request: InferRequest, response: InferResponse) -> InferResponse:
        response.parameters = {"written": True}
        return response

    def outputs(self, response: InferResponse) -> list[Tensor]:
        return list(response.outputs)


@pytest.mark.parametrize("classes", [0, 1])
def test_regions_have_the_last_word(classes: int) -> None:
    request = asking(classes)
    request.classifies, request.regions = bool(classes), Held()
    (response,) = finishing().apply([request], [answer([[1, 5]])])
    assert response.parameters == {"written": True}
