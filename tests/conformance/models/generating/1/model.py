"""Returns a description of its inputs and the outputs that the parameter `give` names."""

from __future__ import annotations

import json

import numpy as np
import triton_python_backend_utils as pb_utils


def strings(name, *values):
    return pb_utils.Tensor(name, np.array(values, np.object_))


GIVEN = {
    "nothing": list,
    "two strings": lambda: [strings("MORE", "a", "é")],
    "one string": lambda: [strings("MORE", "only")],
    "no strings": lambda: [strings("MORE")],
    "control characters": lambda: [strings("MORE", '"\\\n\t\x01')],
    "no text": lambda: [strings("MORE", b"\xff\xfe", "b")],
    "one that is no text": lambda: [strings("MORE", b"\xff")],
    "a matrix": lambda: [pb_utils.Tensor("NUMBERS", np.arange(6.0).reshape(2, 3))],
    "a matrix of one": lambda: [pb_utils.Tensor("NUMBERS", np.array([[0.1]]))],
    "an empty matrix": lambda: [pb_utils.Tensor("NUMBERS", np.empty((0, 3)))],
    "no numbers": lambda: [pb_utils.Tensor("NUMBERS", np.array([[np.nan, np.inf, -np.inf]]))],
    "one that is no number": lambda: [pb_utils.Tensor("NUMBERS", np.array([[np.nan]]))],
    "large and small": lambda: [
        pb_utils.Tensor("NUMBERS", np.array([[1e300, -1e-300, 1e15, 123456789.125, 0.0]]))
    ],
    "half a number": lambda: [pb_utils.Tensor("SINGLE", np.array([1], np.float16))],
    "a name that is taken": lambda: [pb_utils.Tensor("model_name", np.array([7], np.int32))],
}


class TritonPythonModel:
    def execute(self, requests):
        return [self._respond(request) for request in requests]

    def _respond(self, request):
        parameters = json.loads(request.parameters())
        if "raise" in parameters:
            raise ValueError(parameters["raise"])
        if "error" in parameters:
            code = getattr(pb_utils.TritonError, parameters["error"])
            return pb_utils.InferenceResponse(
                error=pb_utils.TritonError("as it was asked to", code)
            )
        if "give" in parameters:
            return pb_utils.InferenceResponse(GIVEN[parameters["give"]]())
        inputs = [
            self._seen(tensor) for tensor in sorted(request.inputs(), key=lambda one: one.name())
        ]
        own = [request.request_id(), request.correlation_id(), request.flags(), request.timeout()]
        return pb_utils.InferenceResponse([strings("SEEN", json.dumps([inputs, parameters, own]))])

    def _seen(self, tensor):
        array = tensor.as_numpy()
        return [
            tensor.name(),
            str(array.dtype),
            list(array.shape),
            [repr(one) for one in array.ravel().tolist()],
        ]
