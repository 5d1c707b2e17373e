"""Imports local modules: relatively, from the version's package and from the model's folder."""

from __future__ import annotations

import os

import numpy as np
import triton_python_backend_utils as pb_utils
from version_helper import VERSION_HELPER

from . import relative_helper
from .inner.deep import DEEP


class TritonPythonModel:
    def initialize(self, args):
        self.imported = [
            relative_helper.NAME,
            DEEP,
            VERSION_HELPER,
            __name__,
            os.path.relpath(__file__, args["model_repository"]),
            str(args["model_repository"] == os.path.dirname(pb_utils.get_model_dir())),
            __import__("model_helper").MODEL_HELPER,
        ]

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUT", np.array(self.imported, np.object_))]
            )
            for _ in requests
        ]
