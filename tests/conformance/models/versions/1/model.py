"""Returns the version that executed."""

from __future__ import annotations

import os

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        pb_utils.Logger.log_info(
            f"versions: instance {args['model_instance_name']} of version {args['model_version']}"
        )
        self.description = f"{args['model_version']} {args['model_instance_name']} {__name__} {os.path.basename(pb_utils.get_model_dir())}"

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUT", np.array([self.description], np.object_))]
            )
            for _ in requests
        ]
