"""Writes down every request before the first one that a client can ask with, and tells what it wrote down."""

from __future__ import annotations

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.decoupled = config.get("model_transaction_policy", {}).get("decoupled", False)
        self.how = {name: each["string_value"] for name, each in config.get("parameters", {}).items()}
        self.outputs = [output["name"] for output in config["output"]]
        self.rows = config["max_batch_size"] > 0
        self.seen = []

    def execute(self, requests):
        told = [self._note(request, len(requests)) for request in requests]
        self._misbehave()
        if not self.decoupled:
            return [self._answer(request, so_far) for request, so_far in zip(requests, told, strict=True)]
        for request, so_far in zip(requests, told, strict=True):
            sender = request.get_response_sender()
            for _ in range(int(self.how.get("answers", "1"))):
                sender.send(self._answer(request, so_far))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None

    def _misbehave(self):
        how = self.how.get("how", "")
        if how == "raises":
            raise RuntimeError("no warm-up today")
        if how == "dies":
            os.abort()
        if how == "calls":
            asked = pb_utils.InferenceRequest(
                model_name="add_sub",
                requested_output_names=["OUTPUT0"],
                inputs=[pb_utils.Tensor(name, np.ones(4, np.float32)) for name in ("INPUT0", "INPUT1")],
            )
            answer = asked.exec()
            said = answer.error().message() if answer.has_error() else answer.output_tensors()[0].as_numpy().tolist()
            self.seen.append(json.dumps(said))

    def _note(self, request, together):
        so_far = list(self.seen)
        said = {
            "id": request.request_id(),
            "sequence": request.correlation_id(),
            "flags": request.flags(),
            "parameters": request.parameters(),
            "outputs": sorted(request.requested_output_names()),
            "timeout": request.timeout(),
            "together": together,
        }
        for tensor in request.inputs():
            said[tensor.name()] = [str(tensor.as_numpy().dtype), list(tensor.shape()), self._values(tensor)]
        self.seen.append(json.dumps(said, sort_keys=True))
        return so_far

    def _values(self, tensor):
        if self.how.get("values") == "hidden":
            return None
        return [each.decode() if isinstance(each, bytes) else each for each in tensor.as_numpy().ravel().tolist()]

    def _answer(self, request, so_far):
        if self.how.get("how") == "answers an error":
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("not warm enough"))
        text = np.array([each.encode() for each in so_far], np.object_)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor(name, text.reshape((1, -1)) if self.rows else text) for name in self.outputs]
        )
