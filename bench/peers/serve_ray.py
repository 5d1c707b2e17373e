"""The model behind Ray Serve: one replica, batches without a waiting time."""

import signal
import sys

import numpy as np
import onnxruntime
import ray
from ray import serve


@serve.deployment(num_replicas=1, max_ongoing_requests=128)
class AddSub:
    """Sums and differences of two rows of 16 integers."""

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options)

    @serve.batch(max_batch_size=8, batch_wait_timeout_s=0.0)
    async def run(self, requests):
        feeds = {
            name: np.array([each[name] for each in requests], np.int32)
            for name in ("INPUT0", "INPUT1")
        }
        outputs = self.session.run(["OUTPUT0", "OUTPUT1"], feeds)
        return [
            {"OUTPUT0": first.tolist(), "OUTPUT1": second.tolist()}
            for first, second in zip(*outputs, strict=True)
        ]

    async def __call__(self, request):
        return await self.run(await request.json())


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[2])})
    serve.run(AddSub.bind(sys.argv[1]))
    signal.sigwait([signal.SIGTERM, signal.SIGINT])
    ray.shutdown()
