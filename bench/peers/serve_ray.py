"""Ray Serve: one replica, batches without a waiting time."""

import signal
import sys

import ray
from add_sub import AddSub
from ray import serve


@serve.deployment(num_replicas=1, max_ongoing_requests=128)
class Deployment:
    """Serves batches of requests."""

    def __init__(self, path):
        self.model = AddSub(path)

    @serve.batch(max_batch_size=8, batch_wait_timeout_s=0.0)
    async def run(self, requests):
        return self.model.answer(requests)

    async def __call__(self, request):
        return await self.run(await request.json())


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[2])})
    serve.run(Deployment.bind(sys.argv[1]))
    signal.sigwait([signal.SIGTERM, signal.SIGINT])
    ray.shutdown()
