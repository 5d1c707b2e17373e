from __future__ import annotations

import gc
import shutil
from pathlib import Path

import numpy as np
import psutil
import pytest

from plugins.backend_c.tests.conftest import int_model
from tritonpy import Batch, InferRequest, Tensor
from tritonpy_backend_c.backend import CBackend
from tritonpy_testing import BackendHarness, model_config

GOOD, SEND_TWICE = 0, 1
IN_SERVER = 'parameters { key: "isolation" value { string_value: "thread" } }'


class _Count:
    """Owns requests and counts their responses."""

    def __init__(self) -> None:
        self.responses = 0

    def respond(self, requests, responses) -> None:
        self.responses += len(responses)

    def reschedule(self, request) -> None:
        raise AssertionError

    def cancel(self, request) -> None:
        raise AssertionError


@pytest.mark.parametrize("mode", [GOOD, SEND_TWICE])
def test_a_hundred_thousand_requests_leave_no_memory(
    backends: Path, tmp_path: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "tritonpy.backend")  # captured lines would be the memory
    shutil.copytree(backends / "misbehave", tmp_path / "1")
    config = model_config(int_model("misbehave", IN_SERVER))
    with BackendHarness(CBackend, config, tmp_path) as harness:
        owner = _Count()
        instance = harness.instance
        assert isinstance(instance, CBackend)
        data = Tensor.from_numpy("IN", np.array([mode], np.int32))

        def execute(count: int) -> None:
            for _ in range(count // 4):
                requests = [
                    InferRequest("m", {"IN": data}, harness.recorder.sink, owner=owner)
                    for _ in range(4)
                ]
                instance.execute(Batch(requests, model=harness.model))

        execute(20_000)
        gc.collect()
        before = psutil.Process().memory_info().rss
        execute(100_000)
        gc.collect()
        grown = psutil.Process().memory_info().rss - before
    assert owner.responses == 120_000
    assert grown < 8 << 20
