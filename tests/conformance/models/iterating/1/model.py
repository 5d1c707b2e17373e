"""Reschedules each request as often as it requests, and responds at the last execution.

A decoupled model responds at every execution.
"""

from __future__ import annotations

import json

import numpy as np
import triton_python_backend_utils as pb_utils

CONTROLS = ("START", "END", "READY")


def value(request, name):
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy()[0, 0]


class TritonPythonModel:
    def initialize(self, args):
        self.seen = {}
        self.decoupled = (
            json.loads(args["model_config"])
            .get("model_transaction_policy", {})
            .get("decoupled", False)
        )

    def execute(self, requests):
        responses = [
            self.turn(request) if value(request, "READY") else self.respond("nothing")
            for request in requests
        ]
        return None if self.decoupled else responses

    def turn(self, request):
        number = request.correlation_id()
        seen = self.seen.setdefault(number, [])
        seen.append(self.says(request))
        what = (value(request, "WHAT") or b"").decode()
        if what == "raise" and len(seen) == 2:
            raise ValueError("in the second turn")
        last = len(seen) >= value(request, "TURNS")
        response = self.respond(*seen)
        if last:
            del self.seen[number]
        else:
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        if self.decoupled:
            flags = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if last else 0
            request.get_response_sender().send(response, flags=flags)
            return None
        return response if last or what == "answer" else None

    def says(self, request):
        controls = " ".join(f"{name} {float(value(request, name))}" for name in CONTROLS)
        same = value(request, "CORRID") == request.correlation_id() != 0
        return f"{controls}, flags {request.flags()}, id as in CORRID: {same}"

    def respond(self, *texts):
        return pb_utils.InferenceResponse([pb_utils.Tensor("SEEN", np.array([texts], np.object_))])
