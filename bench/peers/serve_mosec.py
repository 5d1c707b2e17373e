"""The model behind mosec, whose web server is written in Rust: one worker process."""

import os
import sys

import numpy as np
import onnxruntime
from mosec import Server, Worker


class AddSub(Worker):
    """Sums and differences of two rows of 16 integers."""

    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(os.environ["MODEL"], options)

    def forward(self, requests):
        feeds = {
            name: np.array([each[name] for each in requests], np.int32)
            for name in ("INPUT0", "INPUT1")
        }
        outputs = self.session.run(["OUTPUT0", "OUTPUT1"], feeds)
        return [
            {"OUTPUT0": first.tolist(), "OUTPUT1": second.tolist()}
            for first, second in zip(*outputs, strict=True)
        ]


if __name__ == "__main__":
    # Its worker processes see other arguments.
    os.environ["MODEL"], port = sys.argv[1:3]
    sys.argv[1:] = ["--address=127.0.0.1", f"--port={port}", "--timeout=30000"]
    server = Server()
    server.append_worker(AddSub, num=1, max_batch_size=8, max_wait_time=1)
    server.run()
