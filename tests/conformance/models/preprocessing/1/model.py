"""Reads images in the portable pixmap format and returns them as normalized planes."""

from __future__ import annotations

import json

import numpy as np
import triton_python_backend_utils as pb_utils

MEAN = np.array([0.5, 0.25, 0.125], np.float32)


def pixels(image):
    kind, width, height, largest, data = image.split(maxsplit=4)
    if kind != b"P6":
        raise ValueError(f"not a pixmap but {kind!r}")
    read = np.frombuffer(data, np.uint8).reshape(int(height), int(width), 3)
    return (read.astype(np.float32) / int(largest) - MEAN).transpose(2, 0, 1)


class TritonPythonModel:
    def initialize(self, args):
        output = pb_utils.get_output_config_by_name(json.loads(args["model_config"]), "PIXELS")
        self.kind = pb_utils.triton_string_to_numpy(output["data_type"])

    def execute(self, requests):
        return [
            self._respond(pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy())
            for request in requests
        ]

    def _respond(self, images):
        try:
            planes = np.stack([pixels(image) for image in images.ravel()]).astype(self.kind)
        except ValueError as error:
            return pb_utils.InferenceResponse(
                error=pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG)
            )
        kinds = np.array([[image[:2]] for image in images.ravel()], np.object_)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("PIXELS", planes), pb_utils.Tensor("FORMAT", kinds)]
        )
