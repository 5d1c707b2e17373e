"""The model behind LitServe: one worker process, batches without a waiting time."""

import sys

import litserve
import numpy as np
import onnxruntime


class Api(litserve.LitAPI):
    """Sums and differences of two rows of 16 integers."""

    def setup(self, device):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(sys.argv[1], options)

    def decode_request(self, request):
        return [np.array(request[name], np.int32) for name in ("INPUT0", "INPUT1")]

    def batch(self, inputs):
        first, second = zip(*inputs, strict=True)
        return {"INPUT0": np.stack(first), "INPUT1": np.stack(second)}

    def predict(self, inputs):
        return self.session.run(["OUTPUT0", "OUTPUT1"], inputs)

    def unbatch(self, outputs):
        return list(zip(*outputs, strict=True))

    def encode_response(self, outputs):
        return {"OUTPUT0": outputs[0].tolist(), "OUTPUT1": outputs[1].tolist()}


if __name__ == "__main__":
    server = litserve.LitServer(
        Api(max_batch_size=8, batch_timeout=0.0), accelerator="cpu", workers_per_device=1
    )
    server.run(
        host="127.0.0.1", port=int(sys.argv[2]), log_level="error", generate_client_file=False
    )
