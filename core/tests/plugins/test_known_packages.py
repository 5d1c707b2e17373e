from __future__ import annotations

from tritonpy.hookspecs import registration_hooks
from tritonpy.plugins.known_packages import PACKAGES, package_of


def test_known_names_lead_to_their_distribution() -> None:
    assert package_of("tritonpy_backends", "onnxruntime") == "tritonpy-backend-onnx"
    assert package_of("tritonpy_backends", "nothing") is None
    assert package_of("tritonpy_repo_agents", "sealed") == "tritonpy-agent-sealed"
    assert package_of("tritonpy_commands", "bench") == "tritonpy-bench"
    assert package_of("tritonpy_commands", "serve") is None


def test_every_table_belongs_to_a_hook() -> None:
    assert set(PACKAGES) <= set(registration_hooks())
