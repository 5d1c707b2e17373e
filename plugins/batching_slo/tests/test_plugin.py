from __future__ import annotations

from importlib import import_module

from tritonpy_batching_slo import tritonpy_batch_policies
from tritonpy_batching_slo.policy import SloPolicy
from tritonpy_testing import InProcessClient, running_server


def test_the_policy_is_registered_under_its_name() -> None:
    module, _, name = tritonpy_batch_policies()["slo"].partition(":")
    assert getattr(import_module(module), name) is SloPolicy


def test_a_model_without_a_target_does_not_load(tmp_path) -> None:
    folder = tmp_path / "m"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(
        "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
    )
    (folder / "config.pbtxt").write_text(
        'backend: "python" max_batch_size: 4 input { name: "IN" data_type: TYPE_FP32 dims: 1 } '
        'output { name: "OUT" data_type: TYPE_FP32 dims: 1 } dynamic_batching { } '
        'parameters { key: "batch_policy" value { string_value: "slo" } } '
        'parameters { key: "isolation" value { string_value: "thread" } }'
    )
    nothing = {"http": False, "grpc": False, "metrics": False}
    settings = {
        "repositories": [{"url": str(tmp_path)}],
        "frontends": nothing,
        "exit_on_error": False,
    }
    with running_server(settings) as server:
        assert "slo_ms" in server.engine.repository_index()[0].reason
        assert not InProcessClient(server).is_model_ready("m")
