"""Failures before a model serves and at its end, selected by the configuration parameter `what`."""

from __future__ import annotations

import json
import sys

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.what = json.loads(args["model_config"])["parameters"]["what"]["string_value"]
        action = getattr(self, self.what, None)
        if action is not None:
            action(args)

    def raises(self, args):
        raise ValueError("not with these settings")

    def raises_from_cause(self, args):
        try:
            int("seven")
        except ValueError as error:
            raise RuntimeError("the settings were not read") from error

    def raises_model_exception(self, args):
        raise pb_utils.TritonModelException("cannot start")

    def raises_error_object(self, args):
        raise pb_utils.TritonError("an error is no exception")

    def raises_without_text(self, args):
        raise RuntimeError

    def missing_key(self, args):
        return args["no_such_key"]

    def missing_file(self, args):
        with open("/nowhere/weights.bin", "rb") as file:
            return file.read()

    def returns_a_value(self, args):
        return 17

    def leaves(self, args):
        sys.exit(3)

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([1], np.int32))])
            for _ in requests
        ]

    def finalize(self):
        if self.what == "raises_at_the_end":
            raise RuntimeError("while it ends")
        pb_utils.Logger.log_info("starting: finalize was called")
