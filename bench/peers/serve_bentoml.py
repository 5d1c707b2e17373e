"""BentoML: one worker process with adaptive batching."""

import os
import sys
from pathlib import Path

import bentoml
import numpy as np
from add_sub import AddSub


@bentoml.service(workers=1, logging={"access": {"enabled": False}})
class Service:
    """Serves arrays: `[n, 2, 16]` in, the same shape out."""

    def __init__(self):
        self.model = AddSub(os.environ["MODEL"])

    @bentoml.api(batchable=True, max_batch_size=8, max_latency_ms=10_000)
    def predict(self, inputs: np.ndarray) -> np.ndarray:
        rows = inputs.astype(np.int32)
        return np.stack(self.model.run({"INPUT0": rows[:, 0], "INPUT1": rows[:, 1]}), axis=1)


if __name__ == "__main__":
    os.execve(
        Path(sys.executable).with_name("bentoml"),
        ["bentoml", "serve", "serve_bentoml:Service", "--host=127.0.0.1", f"--port={sys.argv[2]}"],
        os.environ | {"MODEL": sys.argv[1], "PYTHONPATH": str(Path(__file__).parent)},
    )
