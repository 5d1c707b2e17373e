"""Logs its input at every level with every function."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


def failure(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no failure"


class TritonPythonModel:
    def execute(self, requests):
        return [
            self._respond(pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy()[0].decode())
            for request in requests
        ]

    def _respond(self, text):
        logger = pb_utils.Logger
        logger.log_info(f"{text} info")
        logger.log_warn(f"{text} warning")
        logger.log_error(f"{text} error")
        logger.log_verbose(f"{text} verbose")
        logger.log(f"{text} plain")
        logger.log(f"{text} as warning", logger.WARNING)
        logger.log(message=f"{text} as error", level=logger.ERROR)
        failures = [
            failure(lambda: logger.log_info(7)),
            failure(lambda: logger.log("text", 3)),
            str(logger.INFO),
            str(int(logger.VERBOSE)),
        ]
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(failures, np.object_))])
