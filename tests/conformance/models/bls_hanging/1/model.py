"""Calls other models by PLAN and returns their responses."""

from __future__ import annotations

import json

import numpy as np
import triton_python_backend_utils as pb_utils

NUMPY = {"INT32": np.int32, "FP32": np.float32, "BYTES": np.object_}
GIVEN = ("request_id", "correlation_id", "flags", "timeout", "parameters", "model_version")


def tensor(name, datatype, values):
    encoded = [value.encode() for value in values] if datatype == "BYTES" else values
    return pb_utils.Tensor(name, np.array(encoded, NUMPY[datatype]))


def request(call):
    """Return the request for a call of the plan."""
    inputs = [tensor(name, *described) for name, described in call["inputs"].items()]
    given = {name: call[name] for name in GIVEN if name in call}
    if call.get("memory"):
        given["preferred_memory"] = pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0)
    made = pb_utils.InferenceRequest(
        model_name=call["model"], inputs=inputs, requested_output_names=call["outputs"], **given
    )
    if "set_flags" in call:
        made.set_flags(call["set_flags"])
    return made


def readable(value):
    if isinstance(value, bytes):
        text = value.decode()
        return json.loads(text) if text[:1] in "{[" else text
    return value


def as_data(response):
    """Return a response as plain data."""
    if response.has_error():
        return {"error": response.error().message(), "code": int(response.error().code())}
    return {
        one.name(): [readable(value) for value in one.as_numpy().ravel().tolist()]
        for one in response.output_tensors()
    }


def failed(error):
    return {"raised": type(error).__name__, "text": str(error)}


def properties(made):
    return [
        made.request_id(),
        made.correlation_id(),
        made.flags(),
        made.timeout(),
        made.parameters(),
        sorted(made.requested_output_names()),
    ]


class TritonPythonModel:
    def execute(self, requests):
        return [self._respond(one) for one in requests]

    def _respond(self, received):
        plan = json.loads(pb_utils.get_input_tensor_by_name(received, "PLAN").as_numpy()[0])
        result = json.dumps([self._call(call) for call in plan]).encode()
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("RESULT", np.array([result], np.object_))]
        )

    def _call(self, call):
        try:
            made = request(call)
            if call.get("show"):
                return properties(made)
            if "decoupled" not in call:
                return as_data(made.exec())
            result = made.exec(decoupled=call["decoupled"])
            return self._stream(result, call) if call["decoupled"] else as_data(result)
        except Exception as error:
            return failed(error)

    def _stream(self, responses, call):
        if call.get("cancel"):
            first = as_data(next(responses))
            responses.cancel()
            return [first, *(as_data(one) for one in responses)]
        found = [as_data(one) for one in responses]
        if call.get("again"):
            found.append([as_data(one) for one in responses])
        return found
