"""A model whose file has another name than model.py."""

from __future__ import annotations

import os

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        told = np.array([f"{__name__} in {os.path.basename(__file__)}"], np.object_)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", told)]) for _ in requests]
