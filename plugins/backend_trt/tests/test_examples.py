"""The README's model, and others, on a real GPU."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tritonpy.config import DeviceSettings
from tritonpy_backend_trt.backend import TensorRtBackend
from tritonpy_device_cuda.cuda_calls import CudaCalls
from tritonpy_device_cuda.gpus import visible_gpus
from tritonpy_device_cuda.memory_pools import MemoryPools
from tritonpy_testing import BackendHarness

from .conftest import output
from .descriptions import config

README = Path(__file__).parents[1] / "README.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_readme_has_one_program_that_compiles():
    [program] = blocks("python")
    compile(program, str(README), "exec")


@pytest.fixture(scope="module")
def gpu():
    if not visible_gpus():
        pytest.skip("needs an NVIDIA GPU")
    pytest.importorskip("tensorrt", reason="needs the full TensorRT, which builds engines")
    return 0


@pytest.fixture
def built(gpu, tmp_path, monkeypatch):
    """The folder with the README's model, and its training data."""
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    exec(compile(blocks("python")[0], str(README), "exec"), namespace)  # noqa: S102
    return tmp_path / "models" / "digits", namespace


@pytest.mark.parametrize(
    "text",
    [
        "",
        "optimization { cuda { graphs: true output_copy_stream: true } eager_batching: true }",
        "parameters { key: 'isolation' value { string_value: 'process' } }",
    ],
)
def test_the_digits_of_the_readme_are_recognised_on_a_gpu(built, gpu, text):
    folder, trained = built
    parsed = config(
        f"backend: 'tensorrt' platform: 'tensorrt_plan' instance_group {{ gpus: {gpu} }} {text}"
    )
    pools = MemoryPools(DeviceSettings(), [gpu], CudaCalls)
    harness = BackendHarness(
        TensorRtBackend, parsed, folder, gpus=[gpu], memory=pools.of_model(parsed.optimization)
    )
    images = (trained["digits"].data[:100] / 16).astype(np.float32)
    with harness:
        assert harness.model.config.max_batch_size == 32
        requests = [
            harness.request({"image": images[start : start + 4]}) for start in range(0, 100, 4)
        ]
        found = [
            output(answer, "scores").argmax(1)
            for request in requests
            for [answer] in harness.execute(request)
        ]
        assert sum(usage.byte_size for usage in harness.memory_usage()) > 0
    pools.close()
    assert np.concatenate(found).tolist() == trained["trained"].predict(images).tolist()
