"""The README is correct: its code runs, and the server serves the resulting models."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tritonpy_backend_openvino.model_file import FILENAMES
from tritonpy_backend_openvino.settings import PRECISIONS, model_settings
from tritonpy_testing import InferInput, InProcessClient, running_server

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The folder `models` that the code in the README writes."""
    [code] = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    folder = tmp_path_factory.mktemp("readme")
    (folder / "models" / "digits" / "1").mkdir(parents=True)
    exec(compile(code.replace('"models/', f'"{folder}/models/'), "README.md", "exec"), {})  # noqa: S102
    return folder / "models"


@pytest.mark.parametrize("more", ["", "instance_group { count: 2 kind: KIND_CPU }"])
def test_the_trained_classifier_is_served(repository, more):
    config = repository / "digits" / "config.pbtxt"
    config.write_text(more)
    settings = {
        "repositories": [{"url": str(repository)}],
        "frontends": {"http": False, "grpc": False, "metrics": False},
    }
    digits = load_digits()
    with running_server(settings) as server:
        client = InProcessClient(server)
        found = []
        for start in range(0, 400, 4):
            image = (digits.data[start : start + 4] / 16).astype(np.float32)
            answer = client.infer(
                "digits", [InferInput("image", [4, 64], "FP32").set_data_from_numpy(image)]
            )
            found += answer.as_numpy("scores").argmax(axis=1).tolist()
    assert np.mean(np.array(found) == digits.target[:400]) > 0.95


def test_the_readme_lists_every_parameter_and_file():
    names = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", README, re.MULTILINE)
    documented = {name for cell in names for name in re.findall(r"`(\w+)`", cell)}
    assert documented >= {
        "TARGET_DEVICE", "PERFORMANCE_HINT", "NUM_STREAMS", "INFERENCE_NUM_THREADS", "COMPILATION_NUM_THREADS", "HINT_BF16",
        "CPU_EXTENSION_PATH", "RESHAPE_IO_LAYERS", "SKIP_OV_DYNAMIC_BATCHSIZE", "ENABLE_BATCH_PADDING", "precision",
    }  # fmt: skip
    assert all(f"`{name}`" in README for name in (*FILENAMES[1:], *PRECISIONS))
    assert (
        model_settings({"TARGET_DEVICE": "AUTO:GPU,CPU", "precision": "bf16"}).device
        == "AUTO:GPU,CPU"
    )
