"""LitServe: one worker process, batches without a waiting time."""

import sys

import litserve
from add_sub import AddSub


class Api(litserve.LitAPI):
    """Serves batches of requests."""

    def setup(self, device):
        self.model = AddSub(sys.argv[1])

    def batch(self, inputs):
        return inputs

    def predict(self, inputs):
        return self.model.answer(inputs)

    def unbatch(self, outputs):
        return outputs


if __name__ == "__main__":
    server = litserve.LitServer(
        Api(max_batch_size=8, batch_timeout=0.0), accelerator="cpu", workers_per_device=1
    )
    server.run(
        host="127.0.0.1", port=int(sys.argv[2]), log_level="error", generate_client_file=False
    )
