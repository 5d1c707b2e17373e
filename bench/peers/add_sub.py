"""The model of every peer: sums and differences of rows of 16 integers."""

import numpy as np
import onnxruntime

INPUTS, OUTPUTS = ("INPUT0", "INPUT1"), ["OUTPUT0", "OUTPUT1"]


class AddSub:
    """A session of the model in `path`, with one thread."""

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(path, options)

    def run(self, inputs):
        """Return the two outputs for arrays of int32[n, 16] by name."""
        return self._session.run(OUTPUTS, inputs)

    def answer(self, requests):
        """Return the JSON objects for requests with two lists of 16 integers each."""
        inputs = {name: np.array([each[name] for each in requests], np.int32) for name in INPUTS}
        return [
            dict(zip(OUTPUTS, (first.tolist(), second.tolist()), strict=True))
            for first, second in zip(*self.run(inputs), strict=True)
        ]
