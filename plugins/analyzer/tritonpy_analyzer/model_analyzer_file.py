"""Reads a configuration file of NVIDIA's Model Analyzer as options of an analysis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tritonpy_load_generator.options import BadUsage

_CONSTRAINTS = {
    "perf_throughput": ("rate", ""),
    "perf_latency_p99": ("p99", "ms"),
    "perf_latency_p95": ("p95", "ms"),
    "perf_latency_p90": ("p90", "ms"),
    "perf_latency_avg": ("mean", "ms"),
    "gpu_used_memory": ("memory.gpu", "MB"),
    "cpu_used_ram": ("memory.cpu", "MB"),
    "time_to_first_token_p99": ("ttft", "ms"),
    "inter_token_latency_p99": ("itl", "ms"),
}
_OBJECTIVES = {
    "perf_throughput": ("maximize", "rate"),
    "perf_latency_p99": ("minimize", "p99"),
    "gpu_used_memory": ("minimize", "memory.gpu"),
    "cpu_used_ram": ("minimize", "memory.cpu"),
    "time_to_first_token_p99": ("minimize", "ttft"),
    "inter_token_latency_p99": ("minimize", "itl"),
    "throughput": ("maximize", "rate"),
    "output_token_throughput": ("maximize", "rate"),
    "cpu_free_ram": ("minimize", "memory.cpu"),
    "gpu_free_memory": ("minimize", "memory.gpu"),
}
# Keys that have no meaning here: each search measures alternately, with its own stop rule, and
# everything is kept in the study's folder.
_WITHOUT_MEANING = frozenset({
    "always_report_gpu_metrics", "bls_composing_models_parameters", "client_max_retries",
    "client_protocol_options", "collect_cpu_metrics", "dcgm_disable", "early_exit_enable",
    "export_path", "filename_model_gpu", "filename_model_inference", "filename_server_only",
    "force", "genai_perf_flags", "gpu_output_fields", "gpus", "inference_output_fields",
    "monitoring_interval", "num_configs_per_model", "num_top_model_configs", "optuna_search_mode",
    "output_model_repository_path", "override_output_model_repository", "perf_analyzer_cpu_util",
    "perf_analyzer_flags", "perf_analyzer_max_auto_adjusts", "perf_analyzer_path",
    "perf_analyzer_timeout", "perf_output", "perf_output_path", "plots", "reload_model_disable",
    "run_config_profile_models_concurrently_enable", "run_config_search_disable",
    "run_config_search_max_binary_search_steps", "run_config_search_mode", "server_output_fields",
    "skip_detailed_reports", "skip_summary_reports", "summarize", "triton_docker_image",
    "triton_docker_args", "triton_docker_labels", "triton_docker_mounts", "triton_docker_shm_size",
    "triton_install_path", "triton_metrics_url", "triton_output_path", "triton_server_environment",
    "triton_server_flags", "triton_server_path", "use_concurrency_formula", "verbose", "quiet",
    "debug", "latency_budget_enable", "cpu_only", "cpu_only_composing_models", "model_type",
    "request_rate_search_enable", "concurrency_sweep_disable", "dcgm_enable", "weighting",
    "min_percentage_of_search_space", "max_percentage_of_search_space", "optuna_min_trials",
    "optuna_max_trials", "optuna_early_exit_threshold", "use_default_model_config",
    "run_config_search_min_concurrency", "run_config_search_max_concurrency",
    "run_config_search_min_instance_count", "run_config_search_min_model_batch_size",
    "run_config_search_min_request_rate", "run_config_search_max_request_rate", "batch_sizes",
    "model_config_parameters", "parameters", "ensemble_composing_models", "triton_launch_mode",
})  # fmt: skip


def read_model_analyzer_file(
    path: Path, named: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return options with the file's values where the command line left the default.

    Also return the file's keys that have no meaning here. Raises BadUsage for a file that is not
    such a configuration, and for unknown keys.
    """
    raw = _read(path)
    options = dict(named)
    models = _models(path, raw)
    _set(options, "models", tuple(models))
    _set(options, "repository", raw.get("model_repository", ""))
    if raw.get("triton_launch_mode") == "remote":
        protocol = raw.get("client_protocol", "grpc")
        _set(options, "url", raw.get(f"triton_{protocol}_endpoint", "localhost:8001"))
        options["repository"] = named["repository"]
        options["protocol"] = protocol
    _set(options, "folder", raw.get("checkpoint_directory", ""))
    _set(options, "max_instances", raw.get("run_config_search_max_instance_count"))
    _set(options, "max_batch_size", raw.get("run_config_search_max_model_batch_size"))
    _set(options, "composing_models", tuple(_names(raw.get("bls_composing_models", ()))))
    settings = [raw, *(each for each in models.values() if each)]
    _set(options, "slo", tuple(text for each in settings for text in _slo(path, each)))
    for direction in ("maximize", "minimize"):
        _set(options, direction, tuple(_objectives(path, settings, direction)))
    known = {
        "model_repository", "profile_models", "checkpoint_directory", "client_protocol",
        "triton_http_endpoint", "triton_grpc_endpoint", "bls_composing_models", "latency_budget",
        "min_throughput", "constraints", "objectives", "run_config_search_max_instance_count",
        "run_config_search_max_model_batch_size",
    }  # fmt: skip
    used = {name for each in settings for name in each}
    unknown = used - known - _WITHOUT_MEANING
    if unknown:
        raise BadUsage(f"{path}: Model Analyzer has no key '{min(unknown)}'")
    return options, sorted(used & _WITHOUT_MEANING - {"triton_launch_mode"})


def _read(path: Path) -> Mapping[str, Any]:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadUsage(f"{path} cannot be read: {error}") from error
    if not isinstance(raw, Mapping):
        raise BadUsage(f"{path} is not a configuration of Model Analyzer: it has no keys")
    return raw


def _models(path: Path, raw: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    given = raw.get("profile_models", ())
    if isinstance(given, Mapping):
        return {str(name): value or {} for name, value in given.items()}
    found: dict[str, Mapping[str, Any]] = {}
    for each in _names(given):
        if isinstance(each, Mapping):
            found.update({str(name): value or {} for name, value in each.items()})
        else:
            found[str(each)] = {}
    if not found:
        raise BadUsage(f"{path}: profile_models names no model")
    return found


def _names(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value or ())


def _set(options: dict[str, Any], name: str, value: Any) -> None:
    """Set an option that the command line left at its default."""
    if value and options[name] in {"", (), 128, 8}:
        options[name] = value


def _slo(path: Path, settings: Mapping[str, Any]) -> list[str]:
    found = []
    if settings.get("latency_budget"):
        found.append(f"p99<{settings['latency_budget']}ms")
    if settings.get("min_throughput"):
        found.append(f"rate>{settings['min_throughput']}")
    for name, bounds in (settings.get("constraints") or {}).items():
        if name not in _CONSTRAINTS:
            raise BadUsage(f"{path}: the constraint '{name}' is not supported")
        metric, unit = _CONSTRAINTS[name]
        if "max" in bounds:
            found.append(f"{metric}<{bounds['max']}{unit}")
        if "min" in bounds:
            found.append(f"{metric}>{bounds['min']}{unit}")
    return found


def _objectives(path: Path, settings: list[Mapping[str, Any]], direction: str) -> list[str]:
    found: dict[str, None] = {}
    for each in settings:
        for name in _names(each.get("objectives", ())):
            if name not in _OBJECTIVES:
                raise BadUsage(f"{path}: the objective '{name}' is not supported")
            if _OBJECTIVES[name][0] == direction:
                found[_OBJECTIVES[name][1]] = None
    return list(found)
