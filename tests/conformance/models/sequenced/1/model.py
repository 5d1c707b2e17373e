"""Sums up the values of each sequence, and returns the contents of the batch.

A request with the parameter `sleep` takes that many milliseconds.
"""

from __future__ import annotations

import json
import time

import numpy as np
import triton_python_backend_utils as pb_utils

CONTROLS = ("START", "END", "READY", "CORRID")


class TritonPythonModel:
    def initialize(self, args):
        self.batched = json.loads(args["model_config"])["max_batch_size"] > 0
        self.sums = {}

    def execute(self, requests):
        seen = [self._seen(request) for request in requests]
        time.sleep(
            max(json.loads(request.parameters()).get("sleep", 0) for request in requests) / 1000
        )
        return [
            pb_utils.InferenceResponse(
                [
                    pb_utils.Tensor("SUM", self._shaped(self._added(request), np.int32)),
                    pb_utils.Tensor("SEEN", self._shaped(json.dumps(seen).encode(), np.object_)),
                ]
            )
            for request in requests
        ]

    def _shaped(self, value, dtype):
        return np.array([[value]] if self.batched else [value], dtype)

    def _added(self, request):
        """Return the sum of a request; an empty slot has no id and meaningless contents."""
        name = request.correlation_id()
        if not name:
            return 0
        if request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START:
            self.sums[name] = 0
        given = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        self.sums[name] = self.sums.get(name, -1000) + int(given.sum())
        return self.sums[name]

    def _seen(self, request):
        inputs = {tensor.name(): tensor for tensor in request.inputs()}
        return {
            "id": request.request_id(),
            "sequence": request.correlation_id(),
            "flags": request.flags(),
            "wanted": sorted(request.requested_output_names()),
            "timeout": request.timeout(),
            "cancelled": request.is_cancelled(),
            "shapes": {name: list(tensor.shape()) for name, tensor in sorted(inputs.items())},
            "controls": {
                name: [str(tensor.as_numpy().dtype), str(tensor.as_numpy().ravel()[0])]
                for name, tensor in sorted(inputs.items())
                if name in CONTROLS
            },
        }
