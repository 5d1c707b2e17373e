"""Loads and unloads other models by PLAN, and returns the result or error of each step."""

from __future__ import annotations

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._respond(request) for request in requests]

    def _respond(self, request):
        plan = json.loads(pb_utils.get_input_tensor_by_name(request, "PLAN").as_numpy()[0])
        result = json.dumps([self._step(*step) for step in plan]).encode()
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("RESULT", np.array([result], np.object_))]
        )

    def _step(self, name, *arguments):
        try:
            return getattr(self, f"_do_{name}")(*arguments)
        except Exception as error:
            return {"raised": type(error).__name__, "text": str(error)}

    def _do_load(self, *arguments):
        return pb_utils.load_model(*arguments)

    def _do_load_files(self, name, config, files):
        return pb_utils.load_model(
            model_name=name,
            config=config,
            files={path: text.encode() for path, text in files.items()},
        )

    def _do_unload(self, *arguments):
        return pb_utils.unload_model(*arguments)

    def _do_ready(self, *arguments):
        return pb_utils.is_model_ready(*arguments)

    def _do_exec(self, name):
        tensor = pb_utils.Tensor("IN", np.array([1], np.int32))
        response = pb_utils.InferenceRequest(
            model_name=name, inputs=[tensor], requested_output_names=["OUT"]
        ).exec()
        return (
            response.error().message()
            if response.has_error()
            else [str(one) for one in response.output_tensors()[0].as_numpy().tolist()]
        )
