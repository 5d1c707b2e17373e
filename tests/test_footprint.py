"""Resources that a server holds: memory, threads, descriptors."""

from __future__ import annotations

import json
from typing import Any

import psutil

ROW = list(range(16))
ADD_SUB = json.dumps(
    {
        "inputs": [
            {"name": name, "datatype": "INT32", "shape": [1, 16], "data": ROW}
            for name in ("INPUT0", "INPUT1")
        ]
    }
)
MAX_RESIDENT = 150_000_000
CYCLES = 20


def test_a_server_with_one_small_model_uses_little_memory(serve: Any, models: Any) -> None:
    models.example("add_sub")
    with serve(f"--model-repository={models.path}") as served:
        assert served.request("/v2/models/add_sub/infer", ADD_SUB).status == 200
        process = psutil.Process(served.process.pid)
        resident = sum(
            each.memory_info().rss for each in [process, *process.children(recursive=True)]
        )
        assert resident < MAX_RESIDENT, f"{resident / 1e6:.0f} MB"


def test_repeated_loads_and_unloads_leak_no_thread_and_no_descriptor(
    serve: Any, models: Any
) -> None:
    models.example("add_sub")
    with serve(f"--model-repository={models.path}", "--model-control-mode=explicit") as served:
        process = psutil.Process(served.process.pid)

        def cycle() -> None:
            assert served.request("/v2/repository/models/add_sub/load", "{}").status == 200
            assert served.request("/v2/models/add_sub/infer", ADD_SUB).status == 200
            assert served.request("/v2/repository/models/add_sub/unload", "{}").status == 200

        for _ in range(8):
            cycle()
        served.wait(lambda: served.log.count("successfully unloaded") == 8, "the model is gone")
        threads, descriptors = process.num_threads(), process.num_fds()
        for _ in range(CYCLES):
            cycle()
        most = (
            threads + CYCLES // 2
        )  # two loop tasks at once may add a thread to a pool, up to its bound
        served.wait(
            lambda: process.num_threads() <= most and process.num_fds() <= descriptors,
            "all is given back",
        )
