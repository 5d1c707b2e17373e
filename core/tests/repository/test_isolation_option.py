"""Isolation of instances configured for a backend instead of a model."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tritonpy_testing import InferInput, InProcessClient, ModelRepository

from ..toys.isolated import ProcessInspector, isolating
from ..toys.serving import ToyPlugin

CONFIG = """
backend: "introvert"
input { name: "IN" data_type: TYPE_INT32 dims: 1 }
output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""
OWN = CONFIG + 'parameters { key: "isolation" value { string_value: "%s" } }'


@pytest.mark.parametrize(
    "settings",
    [
        {"backends": {"introvert": {"isolation": "process"}}},
        {"backend_defaults": {"isolation": "process"}},
    ],
)
def test_all_models_of_a_backend_run_in_processes_unless_they_say_otherwise(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    repository = ModelRepository(tmp_path)
    repository.add("follows", CONFIG)
    repository.add("differs", OWN % "thread")
    with isolating(repository, ToyPlugin({"introvert": ProcessInspector}), **settings) as server:
        client = InProcessClient(server)
        tensor = InferInput("IN", [1], "INT32").set_data_from_numpy(
            np.full(1, ProcessInspector.PID, np.int32)
        )
        pids = {
            name: client.infer(name, [tensor]).as_numpy("OUT").item()
            for name in ("follows", "differs")
        }
    assert pids["differs"] == os.getpid()
    assert pids["follows"] != os.getpid()
