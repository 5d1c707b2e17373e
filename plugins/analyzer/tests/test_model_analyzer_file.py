from __future__ import annotations

import pytest

from tritonpy_analyzer.model_analyzer_file import read_model_analyzer_file
from tritonpy_load_generator.options import BadUsage

DEFAULTS = {
    "models": (), "repository": "", "url": "", "folder": "", "max_instances": 8, "max_batch_size": 128,
    "composing_models": (), "slo": (), "maximize": (), "minimize": (), "protocol": "http",
}  # fmt: skip


def read(tmp_path, text, **given):
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return read_model_analyzer_file(path, {**DEFAULTS, **given})


def test_models_limits_constraints_and_objectives_are_taken_over(tmp_path):
    options, ignored = read(
        tmp_path,
        """
        model_repository: /models
        profile_models:
          digits:
            constraints: {perf_latency_p99: {max: 20}, gpu_used_memory: {max: 4000}}
            objectives: [perf_throughput]
            parameters: {concurrency: {start: 1, stop: 8, step: 2}}
        run_config_search_max_instance_count: 4
        run_config_search_max_model_batch_size: 32
        run_config_search_mode: quick
        export_path: results
        """,
    )
    assert options["models"] == ("digits",)
    assert options["repository"] == "/models"
    assert options["slo"] == ("p99<20ms", "memory.gpu<4000MB")
    assert options["maximize"] == ("rate",)
    assert (options["max_instances"], options["max_batch_size"]) == (4, 32)
    assert ignored == ["export_path", "parameters", "run_config_search_mode"]


@pytest.mark.parametrize("models", ["a,b", "[a, b]", "[a, {b: {}}]", "{a: , b: }"])
def test_models_are_named_in_every_form(tmp_path, models):
    options, _ = read(tmp_path, f"profile_models: {models}\nlatency_budget: 15\nmin_throughput: 9")
    assert options["models"] == ("a", "b")
    assert options["slo"] == ("p99<15ms", "rate>9")


def test_the_remote_mode_is_a_running_server(tmp_path):
    text = "profile_models: a\ntriton_launch_mode: remote\ntriton_grpc_endpoint: host:8001"
    options, _ = read(tmp_path, text)
    assert (options["url"], options["protocol"]) == ("host:8001", "grpc")


def test_the_command_line_takes_precedence(tmp_path):
    options, _ = read(tmp_path, "profile_models: a\nlatency_budget: 15", slo=("p99<9ms",))
    assert options["slo"] == ("p99<9ms",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profile_models: a\nlatency_bugdet: 3", "has no key 'latency_bugdet'"),
        ("- a", "it has no keys"),
        ("a: [", "cannot be read"),
        ("model_repository: x", "profile_models names no model"),
        ("profile_models: {a: {constraints: {speed: {max: 1}}}}", "the constraint 'speed'"),
        ("profile_models: {a: {objectives: [speed]}}", "the objective 'speed'"),
    ],
)
def test_wrong_files_are_explained(tmp_path, text, message):
    with pytest.raises(BadUsage, match=message):
        read(tmp_path, text)
