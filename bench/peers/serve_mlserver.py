"""MLServer: the model in its main process, which is faster than a worker for small tensors."""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from add_sub import OUTPUTS, AddSub
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class OnnxModel(MLModel):
    """Serves requests of the v2 protocol, which MLServer has batched."""

    async def load(self):
        self.model = AddSub(self.settings.parameters.uri)
        return True

    async def predict(self, payload):
        inputs = {
            each.name: NumpyCodec.decode_input(each).astype(np.int32) for each in payload.inputs
        }
        outputs = self.model.run(inputs)
        return InferenceResponse(
            model_name=self.name,
            outputs=[
                NumpyCodec.encode_output(name, output)
                for name, output in zip(OUTPUTS, outputs, strict=True)
            ],
        )


if __name__ == "__main__":
    folder, port = Path(tempfile.mkdtemp()), int(sys.argv[2])
    settings = {"host": "127.0.0.1", "http_port": port, "grpc_port": int(sys.argv[3])}
    settings |= {"parallel_workers": 0, "metrics_endpoint": None, "debug": False}
    (folder / "settings.json").write_text(json.dumps(settings))
    model = {"name": "add_sub", "implementation": "serve_mlserver.OnnxModel"}
    model |= {"max_batch_size": 8, "max_batch_time": 0.0005, "parameters": {"uri": sys.argv[1]}}
    (folder / "model-settings.json").write_text(json.dumps(model))
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    os.execve(
        Path(sys.executable).with_name("mlserver"),
        ["mlserver", "start", str(folder)],
        environment,
    )
