"""Requests of one batch with different outcomes; each request selects its own."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


def tensor(name, value):
    return pb_utils.Tensor(name, np.array([[value]], np.object_))


class TritonPythonModel:
    def execute(self, requests):
        what = [
            pb_utils.get_input_tensor_by_name(request, "WHAT").as_numpy()[0, 0]
            for request in requests
        ]
        if b"raises" in what:
            raise ValueError("one of them made all fail")
        responses = [self._respond(one) for one in what]
        if b"too_few" in what:
            del responses[-1]
        if b"too_many" in what:
            responses.append(responses[0])
        return responses

    def _respond(self, what):
        if what == b"wrong":
            return "no response"
        if what == b"error":
            return pb_utils.InferenceResponse(
                [], pb_utils.TritonError("this one alone", pb_utils.TritonError.NOT_FOUND)
            )
        if what == b"missing":
            return pb_utils.InferenceResponse([])
        more = [tensor("EXTRA", b"more")] if what == b"extra" else []
        return pb_utils.InferenceResponse([tensor("OUT", what), *more])
