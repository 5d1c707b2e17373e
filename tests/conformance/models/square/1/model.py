"""Responds n times with n, the last time with the final flag; 0 gets only the flag."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            self._respond(request.get_response_sender(), int(request.inputs()[0].as_numpy()[0, 0]))

    def _respond(self, sender, count):
        if count == 0:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        for left in range(count, 0, -1):
            flags = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if left == 1 else 0
            sender.send(
                pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([[count]], np.int32))]),
                flags=flags,
            )
