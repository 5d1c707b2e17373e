from __future__ import annotations

from ...toys.caches import wait_until
from ...toys.hoard import MIB, memory_config
from .conftest import memory_report


def test_the_report_has_the_budget_the_models_and_the_counters(serve, model_repository, infer):
    model_repository.add("a", memory_config(memory_bytes="1MiB"))
    model_repository.add("b", memory_config(memory_bytes="1MiB", pinned="true"))
    model_repository.add("c", memory_config(memory_bytes="1MiB", lazy="false"))
    with serve(memory={"budget": "8MiB", "devices": {"0": "1GiB"}}) as server:
        for _ in range(2):
            infer(server, "a")
        wait_until(
            lambda: memory_report(server)["loads"] == 1
        )  # counted after the waiting request is answered
        report = memory_report(server)
        families = {family.name: family.metrics for family in server._local.custom_metrics()}
    models = {model["name"]: model for model in report.pop("models")}
    assert report == {
        "hits": 1, "misses": 1, "refusals": 0, "loads": 1, "load_failures": 0, "evictions": 0, "waiting_requests": 0,
        "budget": {"all": 8 * MIB, "0": 1 << 30},
        "held": {"all": 2 * MIB, "cpu": 2 * MIB},
        "highest": {"all": 2 * MIB, "cpu": 2 * MIB},
        "waiting_loads": 0,
    }  # fmt: skip
    assert {name: (model["state"], model["lazy"]) for name, model in models.items()} == {
        "a": ("READY", True),
        "b": ("UNAVAILABLE", True),
        "c": ("READY", False),
    }
    assert (models["a"]["held"], models["a"]["idle"], models["b"]["pinned"]) == (
        {"cpu": MIB},
        True,
        True,
    )
    assert models["a"]["last_use"] > 0
    held = {
        metric.labels["device"]: metric.value for metric in families["nv_memory_budget_used_bytes"]
    }
    assert held == {"all": 2 * MIB, "cpu": 2 * MIB, "0": 0}
    assert families["nv_lazy_hits"][0].value == 1


def test_without_a_budget_the_report_covers_only_lazy_models(serve, model_repository):
    model_repository.add("a", memory_config())
    with serve() as server:
        report = memory_report(server)
        names = [family.name for family in server._local.custom_metrics()]
    assert "budget" not in report
    assert [model["name"] for model in report["models"]] == ["a"]
    assert "nv_lazy_loads" in names
    assert "nv_memory_budget_bytes" not in names


def test_a_server_without_memory_settings_offers_no_operation_and_imports_no_budget(
    model_repository,
):
    import subprocess
    import sys

    script = """
import asyncio, sys
from tritonpy_config.server import decode_server_config
from tritonpy.server.server import build
server = build(decode_server_config({"repositories": [{"url": sys.argv[1]}], "frontends": {"http": False, "grpc": False, "metrics": False}}))
assert [each.name for each in server.engine.operations()] == []
async def run():
    await server.start(); await server.drain(); await server.stop()
asyncio.run(run())
print([name for name in sys.modules if name.startswith("tritonpy_residency.")])
"""
    found = subprocess.run(
        [sys.executable, "-c", script, str(model_repository.path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[]"
