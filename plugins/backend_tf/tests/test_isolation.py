"""Models in their own processes respond and fail as in threads.

TensorFlow is imported only where a model is served.
"""

from __future__ import annotations

import subprocess
import sys

ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'
# Runs in a new interpreter that has not imported TensorFlow.
SERVER = """
import sys
import numpy as np
from tritonpy_testing import InferenceServerException, InferInput, InProcessClient, running_server

def ask(model, width):
    rows = np.arange(2 * width, dtype=np.float32).reshape(2, width) / width
    image = InferInput("image", [2, width], "FP32").set_data_from_numpy(rows)
    try:
        return client.infer(model, [image]).as_numpy("scores").tolist()
    except InferenceServerException as error:
        return str(error).replace(model, "MODEL")

def told(model):
    config = type(server.engine.model_config(model))()
    config.CopyFrom(server.engine.model_config(model))
    config.parameters.clear()
    return str(config).replace(model, "MODEL")

off = {"http": False, "grpc": False, "metrics": False}
with running_server({"repositories": [{"url": sys.argv[1]}], "frontends": off, "control": {"mode": "explicit"}}) as server:
    client = InProcessClient(server)
    server.engine.load_model("apart")
    apart = [ask("apart", 64), ask("apart", 3), told("apart")]
    [statistics] = server.engine.statistics("apart")
    assert any(usage.byte_size >= (64 + 256) * 256 * 4 for usage in statistics.memory_usage), statistics.memory_usage
    assert "tensorflow" not in sys.modules
    server.engine.load_model("here")
    assert "tensorflow" in sys.modules
    here = [ask("here", 64), ask("here", 3), told("here")]
assert apart == here, (apart, here)
assert len(here[0]) == 2 and "unexpected shape" in here[1], here
"""


def test_tensorflow_is_imported_only_in_the_serving_process(models, model_repository):
    for name, text in (("apart", ISOLATED), ("here", "")):
        models.version = (
            model_repository.add(name, f'backend: "tensorflow" max_batch_size: 4 {text}') / "1"
        )
        models.network()
    done = subprocess.run(
        [sys.executable, "-c", SERVER, str(model_repository.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
