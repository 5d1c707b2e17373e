"""Postprocessing of responses: client shapes, classification, and output in shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritonpy.errors import FailureReason, TritonError
from tritonpy.model.classification import classify
from tritonpy.model.reshape import Reshape
from tritonpy.types import InferRequest, InferResponse, Tensor


class ResponsePostprocessor:
    """Postprocesses the responses of one model version.

    `batched` says that outputs have a batch dimension.
    """

    def __init__(self, reshape: Reshape, labels: Mapping[str, Sequence[str]], batched: bool) -> None:
        self._reshape = reshape
        self._reshapes = bool(reshape)
        self._labels = labels
        self._batched = batched

    def apply(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> Sequence[InferResponse]:
        """Return the responses as clients get them, one per request.

        A response that cannot be postprocessed becomes an error response.
        """
        if self._reshapes:
            responses = [
                self._reshaped(request, response) for request, response in zip(requests, responses, strict=True)
            ]
        if not any([request.classifies or request.regions is not None for request in requests]):
            return responses
        return [
            self._postprocessed(request, response) for request, response in zip(requests, responses, strict=True)
        ]  # fmt: skip

    def _reshaped(self, request: InferRequest, response: InferResponse) -> InferResponse:
        try:
            response.outputs = self._reshape.apply(response.outputs)
        except TritonError as error:
            return InferResponse.failed(request, type(error)(error.message, FailureReason.BACKEND))
        return response

    def _postprocessed(self, request: InferRequest, response: InferResponse) -> InferResponse:
        if request.classifies:
            response = self._classified(request, response)
        return response if request.regions is None else request.regions.finish(request, response)

    def _classified(self, request: InferRequest, response: InferResponse) -> InferResponse:
        try:
            response.outputs = [self._classes(request, tensor) for tensor in response.outputs]
        except TritonError as error:
            return InferResponse.failed(request, error)
        return response

    def _classes(self, request: InferRequest, tensor: Tensor) -> Tensor:
        spec = request.outputs.get(tensor.name) if request.outputs is not None else None
        if spec is None or not spec.classification:
            return tensor
        return classify(tensor, spec.classification, self._labels.get(tensor.name, ()), self._batched)
