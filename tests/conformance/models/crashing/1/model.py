"""A model whose process ends during an execution; WHAT selects how."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.count = 0

    def execute(self, requests):
        self.count += 1
        what = pb_utils.get_input_tensor_by_name(requests[0], "WHAT").as_numpy()[0].decode()
        getattr(self, what)()
        text = f"fine {self.count}".encode() if what == "fine" else what.encode()
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([text], np.object_))])
            for _ in requests
        ]

    def fine(self):
        pass

    def is_killed(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def is_terminated(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.5)

    def is_interrupted(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)

    def leaves_at_once(self):
        os._exit(4)

    def leaves_with_zero(self):
        os._exit(0)

    def leaves(self):
        sys.exit(3)

    def raises_interrupt(self):
        raise KeyboardInterrupt

    def aborts(self):
        os.abort()

    def reads_nowhere(self):
        ctypes.string_at(0)

    def dies_a_little_later(self):
        threading.Timer(0.2, os._exit, [5]).start()

    def loops(self):
        while True:
            pass
