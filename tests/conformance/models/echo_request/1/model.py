"""Returns all properties of a request and the arguments of `initialize`."""

from __future__ import annotations

import json

import numpy as np
import triton_python_backend_utils as pb_utils


def output(name, value):
    return pb_utils.Tensor(name, np.array([json.dumps(value).encode()], np.object_))


class TritonPythonModel:
    def initialize(self, args):
        self.args = args
        self.args["types"] = sorted({type(value).__name__ for value in args.values()})

    def execute(self, requests):
        return [self._respond(request) for request in requests]

    def _respond(self, request):
        properties = {
            "id": request.request_id(),
            "correlation id": [type(request.correlation_id()).__name__, request.correlation_id()],
            "flags": request.flags(),
            "timeout": request.timeout(),
            "parameters": request.parameters(),
            "requested": [
                type(request.requested_output_names()).__name__,
                sorted(request.requested_output_names()),
            ],
            "inputs": sorted(tensor.name() for tensor in request.inputs()),
            "cancelled": request.is_cancelled(),
            "trace": request.trace().get_context(),
            "type": type(request).__name__,
        }
        args = {**self.args, "model_config": sorted(json.loads(self.args["model_config"]))}
        return pb_utils.InferenceResponse([output("REQUEST", properties), output("ARGS", args)])
