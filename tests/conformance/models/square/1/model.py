"""Answers n times with n, the last time together with the final flag; 0 is answered by the flag alone."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            self._answer(request.get_response_sender(), int(request.inputs()[0].as_numpy()[0, 0]))

    def _answer(self, sender, count):
        if count == 0:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        for left in range(count, 0, -1):
            flags = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if left == 1 else 0
            sender.send(
                pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([[count]], np.int32))]), flags=flags
            )
