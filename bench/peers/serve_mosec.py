"""mosec, whose web server is written in Rust: one worker process."""

import os
import sys

from add_sub import AddSub
from mosec import Server, Worker


class AddSubWorker(Worker):
    """Serves batches of requests."""

    def __init__(self):
        self.model = AddSub(os.environ["MODEL"])

    def forward(self, requests):
        return self.model.answer(requests)


if __name__ == "__main__":
    # Its worker processes see other arguments.
    os.environ["MODEL"], port = sys.argv[1:3]
    sys.argv[1:] = ["--address=127.0.0.1", f"--port={port}", "--timeout=30000"]
    server = Server()
    server.append_worker(AddSubWorker, num=1, max_batch_size=8, max_wait_time=1)
    server.run()
