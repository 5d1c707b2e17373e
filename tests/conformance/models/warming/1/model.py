"""Records every request before the first client request, and returns the record."""

from __future__ import annotations

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.decoupled = config.get("model_transaction_policy", {}).get("decoupled", False)
        self.how = {
            name: each["string_value"] for name, each in config.get("parameters", {}).items()
        }
        self.outputs = [output["name"] for output in config["output"]]
        self.rows = config["max_batch_size"] > 0
        self.seen = []

    def execute(self, requests):
        notes = [self._note(request, len(requests)) for request in requests]
        self._misbehave()
        if not self.decoupled:
            return [
                self._respond(request, so_far)
                for request, so_far in zip(requests, notes, strict=True)
            ]
        for request, so_far in zip(requests, notes, strict=True):
            sender = request.get_response_sender()
            for _ in range(int(self.how.get("answers", "1"))):
                sender.send(self._respond(request, so_far))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None

    def _misbehave(self):
        how = self.how.get("how", "")
        if how == "raises":
            raise RuntimeError("no warm-up today")
        if how == "dies":
            os.abort()
        if how == "calls":
            call = pb_utils.InferenceRequest(
                model_name="add_sub",
                requested_output_names=["OUTPUT0"],
                inputs=[
                    pb_utils.Tensor(name, np.ones(4, np.float32)) for name in ("INPUT0", "INPUT1")
                ],
            )
            response = call.exec()
            outcome = (
                response.error().message()
                if response.has_error()
                else response.output_tensors()[0].as_numpy().tolist()
            )
            self.seen.append(json.dumps(outcome))

    def _note(self, request, together):
        so_far = list(self.seen)
        note = {
            "id": request.request_id(),
            "sequence": request.correlation_id(),
            "flags": request.flags(),
            "parameters": request.parameters(),
            "outputs": sorted(request.requested_output_names()),
            "timeout": request.timeout(),
            "together": together,
        }
        for tensor in request.inputs():
            note[tensor.name()] = [
                str(tensor.as_numpy().dtype),
                list(tensor.shape()),
                self._values(tensor),
            ]
        self.seen.append(json.dumps(note, sort_keys=True))
        return so_far

    def _values(self, tensor):
        if self.how.get("values") == "hidden":
            return None
        return [
            each.decode() if isinstance(each, bytes) else each
            for each in tensor.as_numpy().ravel().tolist()
        ]

    def _respond(self, request, so_far):
        if self.how.get("how") == "answers an error":
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("not warm enough"))
        text = np.array([each.encode() for each in so_far], np.object_)
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor(name, text.reshape((1, -1)) if self.rows else text)
                for name in self.outputs
            ]
        )
