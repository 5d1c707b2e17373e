"""Requests of one batch that fare differently: each is asked what becomes of it."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


def tensor(name, value):
    return pb_utils.Tensor(name, np.array([[value]], np.object_))


class TritonPythonModel:
    def execute(self, requests):
        asked = [pb_utils.get_input_tensor_by_name(request, "WHAT").as_numpy()[0, 0] for request in requests]
        if b"raises" in asked:
            raise ValueError("one of them made all fail")
        responses = [self._answer(one) for one in asked]
        if b"too_few" in asked:
            del responses[-1]
        if b"too_many" in asked:
            responses.append(responses[0])
        return responses

    def _answer(self, asked):
        if asked == b"wrong":
            return "no response"
        if asked == b"error":
            return pb_utils.InferenceResponse(
                [], pb_utils.TritonError("this one alone", pb_utils.TritonError.NOT_FOUND)
            )
        if asked == b"missing":
            return pb_utils.InferenceResponse([])
        more = [tensor("EXTRA", b"more")] if asked == b"extra" else []
        return pb_utils.InferenceResponse([tensor("OUT", asked), *more])
