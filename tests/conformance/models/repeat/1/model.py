"""Responds once per element of its input from a thread, long after `execute` has returned."""

from __future__ import annotations

import threading

import numpy as np
import triton_python_backend_utils as pb_utils


def send_all(request):
    sender = request.get_response_sender()
    for index, value in enumerate(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()):
        tensors = [
            pb_utils.Tensor("OUT", np.array([value], np.int32)),
            pb_utils.Tensor("INDEX", np.array([index], np.uint32)),
        ]
        sender.send(pb_utils.InferenceResponse(tensors))
    sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)


class TritonPythonModel:
    def initialize(self, args):
        self.threads = []

    def execute(self, requests):
        for request in requests:
            thread = threading.Thread(target=send_all, args=(request,))
            thread.start()
            self.threads.append(thread)

    def finalize(self):
        for thread in self.threads:
            thread.join()
