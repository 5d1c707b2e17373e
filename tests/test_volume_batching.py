"""The example of a batch policy: it works as documented and passes the checks of every policy."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http

from tritonpy import Backend, Batch, hookimpl
from tritonpy_testing import BatchPolicyContract, ModelRepository, RunningServer, running_server

EXAMPLE = (
    Path(__file__).resolve().parent.parent / "examples" / "volume_batching" / "volume_batching.py"
)
HELD = 8
SILENT = {"http": False, "grpc": False, "metrics": False}
CONFIG = """
    backend: "noting"
    max_batch_size: 16
    dynamic_batching { }
    input { name: "IN" data_type: TYPE_INT32 dims: -1 allow_ragged_batch: true }
    output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
    parameters { key: "batch_policy" value { string_value: "volume" } }
"""
LIMIT = 'parameters { key: "MAX_BATCH_VOLUME_BYTES" value { string_value: "100" } }'


def example() -> Any:
    spec = importlib.util.spec_from_file_location("volume_batching", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PLUGIN = example()


class TestVolumePolicy(BatchPolicyContract):
    plugin = PLUGIN
    plugin_class = PLUGIN.VolumePolicy
    name = "volume"
    config = f"max_batch_size: 8 {LIMIT}"


class RecordingBackend(Backend):
    """Records the bytes of each request of a batch."""

    batches: list[list[int]]

    def execute(self, batch: Batch) -> None:
        RecordingBackend.batches.append([request.inputs["IN"].nbytes for request in batch.requests])
        super().execute(batch)

    def infer(self, inputs: Any) -> Any:
        rows = RecordingBackend.batches[-1]
        return {"OUT": np.array(rows, np.int32).reshape(-1, 1)}


class RecordingPlugin:
    @hookimpl
    def tritonpy_backends(self) -> dict[str, type[Backend]]:
        return {"noting": RecordingBackend}


@pytest.fixture
def served(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningServer]:
    monkeypatch.setenv("TRITONSERVER_DELAY_SCHEDULER", str(HELD))
    RecordingBackend.batches = []
    model_repository.add("m", CONFIG + LIMIT)
    config = {
        "repositories": [{"url": str(model_repository.path)}],
        "frontends": {"grpc": False, "metrics": False, "http": {"port": 0}},
    }
    with running_server(config, [PLUGIN, RecordingPlugin()]) as server:
        yield server


def test_batches_stay_within_the_byte_limit(served: RunningServer) -> None:
    sizes = [40, 40, 40, 12, 48, 400, 4, 96]

    def infer_size(size: int) -> int:
        with tritonclient.http.InferenceServerClient(served.http) as client:
            tensor = tritonclient.http.InferInput("IN", [1, size // 4], "INT32")
            tensor.set_data_from_numpy(np.zeros((1, size // 4), np.int32))
            return int(client.infer("m", [tensor]).as_numpy("OUT")[0, 0])

    with ThreadPoolExecutor(HELD) as pool:
        assert list(pool.map(infer_size, sizes)) == sizes
    assert sorted(size for batch in RecordingBackend.batches for size in batch) == sorted(sizes)
    assert all(sum(batch) <= 100 or len(batch) == 1 for batch in RecordingBackend.batches)
    ended_early = [
        sum(batch) + following[0]
        for batch, following in zip(
            RecordingBackend.batches, RecordingBackend.batches[1:], strict=False
        )
    ]
    assert all(volume > 100 for volume in ended_early), (
        "a batch ended that the next request would have fitted into"
    )


def test_without_its_limit_a_model_is_not_loaded(model_repository: ModelRepository) -> None:
    model_repository.add("m", CONFIG)
    config = {
        "repositories": [{"url": str(model_repository.path)}],
        "frontends": SILENT,
        "exit_on_error": False,
    }
    with running_server(config, [PLUGIN, RecordingPlugin()]) as server:
        (model,) = server.engine.repository_index()
        assert model.reason.endswith("needs the parameter MAX_BATCH_VOLUME_BYTES")
