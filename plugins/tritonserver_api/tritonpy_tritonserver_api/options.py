"""The options of a server, and the configuration that they mean."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tritonpy_tritonserver_api.errors import InvalidArgumentError
from tritonpy_tritonserver_api.names import (
    InstanceGroupKind,
    LogFormat,
    ModelControlMode,
    RateLimitMode,
)

log = logging.getLogger("tritonpy.server")

_MODES = {
    ModelControlMode.NONE: "none",
    ModelControlMode.POLL: "poll",
    ModelControlMode.EXPLICIT: "explicit",
}
_YEAR_S = 365 * 86400.0  # between two polls of the server's own
_WITHOUT_EFFECT = ("buffer_manager_thread_count", "enable_peer_access")


@dataclass(slots=True)
class RateLimiterResource:
    """The amount of a resource on a device."""

    name: str
    count: int
    device: int


@dataclass(slots=True)
class ModelLoadDeviceLimit:
    """The share of a device's memory up to which models are loaded."""

    kind: InstanceGroupKind
    device: int
    fraction: float


@dataclass(slots=True)
class Options:
    """The options of a server.

    - `model_repository`: one folder or URL, or several; required.
    - `startup_models`: models to load at start in the mode EXPLICIT.
    - `exit_timeout`: in seconds; `metrics_interval`: in milliseconds.
    - `cache_config`, `backend_configuration`, `host_policies`, `metrics_configuration`: settings by
      the name of the cache, backend, policy or "".
    - `buffer_manager_thread_count` and `enable_peer_access` have no effect.
    """

    model_repository: str | list[str] = field(default_factory=list)
    server_id: str = "triton"
    model_control_mode: ModelControlMode = ModelControlMode.NONE
    startup_models: list[str] = field(default_factory=list)
    strict_model_config: bool = False
    rate_limiter_mode: RateLimitMode = RateLimitMode.OFF
    rate_limiter_resources: list[RateLimiterResource] = field(default_factory=list)
    pinned_memory_pool_size: int = 1 << 28
    cuda_memory_pool_sizes: dict[int, int] = field(default_factory=dict)
    cache_config: dict[str, dict[str, Any]] = field(default_factory=dict)
    cache_directory: str = "/opt/tritonserver/caches"
    min_supported_compute_capability: float = 6.0
    exit_on_error: bool = True
    strict_readiness: bool = True
    exit_timeout: int = 30
    buffer_manager_thread_count: int = 0
    model_load_thread_count: int = 4
    model_load_retry_count: int = 0
    model_namespacing: bool = False
    enable_peer_access: bool = True
    log_file: str | None = None
    log_info: bool = False
    log_warn: bool = False
    log_error: bool = False
    log_format: LogFormat = LogFormat.DEFAULT
    log_verbose: int = 0
    metrics: bool = True
    gpu_metrics: bool = True
    cpu_metrics: bool = True
    metrics_interval: int = 2000
    backend_directory: str = "/opt/tritonserver/backends"
    repo_agent_directory: str = "/opt/tritonserver/repoagents"
    model_load_device_limits: list[ModelLoadDeviceLimit] = field(default_factory=list)
    backend_configuration: dict[str, dict[str, str]] = field(default_factory=dict)
    host_policies: dict[str, dict[str, str]] = field(default_factory=dict)
    metrics_configuration: dict[str, dict[str, str]] = field(default_factory=dict)


def server_config(options: Options) -> dict[str, Any]:
    """Return the contents of server.yaml for `options`: a server without ports.

    Raises `InvalidArgumentError` without a repository, and `TypeError` for values of a wrong type.
    """
    if options.model_repository is None:
        raise InvalidArgumentError("Model repository must be specified.")
    _check_types(options)
    repositories = options.model_repository
    options.model_repository = [repositories] if isinstance(repositories, str) else repositories
    if not options.model_repository:
        raise InvalidArgumentError("Model repository must be specified.")
    _warn(options)
    return {
        "id": options.server_id,
        "repositories": [{"url": url} for url in options.model_repository],
        "control": {
            "mode": _MODES[options.model_control_mode],
            "load": options.startup_models,
            "interval_s": _YEAR_S,
            "threads": max(1, options.model_load_thread_count),
            "retries": options.model_load_retry_count,
        },
        "exit_on_error": options.exit_on_error,
        "strict_readiness": options.strict_readiness,
        "exit_timeout_s": options.exit_timeout,
        "disable_auto_complete": options.strict_model_config,
        "model_namespacing": options.model_namespacing,
        "frontends": dict.fromkeys(("http", "grpc", "metrics"), False),
        "cache": options.cache_config,
        "cache_directory": options.cache_directory,
        "backend_directory": options.backend_directory,
        "repo_agent_directory": options.repo_agent_directory,
        "backend_defaults": options.backend_configuration.get("", {}),
        "backends": {name: given for name, given in options.backend_configuration.items() if name},
        "host_policies": {
            name: {key.replace("-", "_"): text for key, text in given.items()}
            for name, given in options.host_policies.items()
        },
        "rate_limit": _rate_limit(options),
        "devices": _devices(options),
        "latencies": _latencies(options.metrics_configuration.get("", {})),
        "logging": _logging(options),
    }


def _rate_limit(options: Options) -> dict[str, Any]:
    return {
        "mode": "off" if options.rate_limiter_mode is RateLimitMode.OFF else "execution_count",
        "resources": {
            each.name if each.device < 0 else f"{each.name}:{each.device}": each.count
            for each in options.rate_limiter_resources
        },
    }


def _devices(options: Options) -> dict[str, Any]:
    return {
        "pinned_memory_pool_byte_size": options.pinned_memory_pool_size,
        "cuda_memory_pool_byte_size": {
            str(device): size for device, size in options.cuda_memory_pool_sizes.items()
        },
        "model_load_gpu_limit": {
            str(each.device): each.fraction
            for each in options.model_load_device_limits
            if each.kind is InstanceGroupKind.GPU
        },
        "min_supported_compute_capability": options.min_supported_compute_capability,
    }


def _logging(options: Options) -> dict[str, Any]:
    info = options.log_info or options.log_verbose > 0  # each level includes the next
    warning = options.log_warn or info
    return {
        "verbose": options.log_verbose,
        "info": info,
        "warning": warning,
        "error": options.log_error or warning,
        "format": "ISO8601" if options.log_format is LogFormat.ISO8601 else "default",
        "file": options.log_file or "",
    }


def _check_types(options: Options) -> None:
    """Raise `TypeError` for a value whose type differs from that of the default."""
    defaults = Options()
    for each in fields(options):
        value, default = getattr(options, each.name), getattr(defaults, each.name)
        expected: tuple[type, ...] = (type(default),)
        if each.name == "model_repository":
            expected = (str, list)
        elif each.name == "log_file":
            expected = (str, type(None))
        elif isinstance(default, float):
            expected = (float, int)
        if not isinstance(value, expected) or (
            isinstance(value, bool) and not isinstance(default, bool)
        ):
            names = " or ".join(kind.__name__ for kind in expected)
            raise TypeError(f"{each.name}: expected {names}, got {value!r}")
    for name in ("model_repository", "startup_models"):
        for value in _several(getattr(options, name)):
            if not isinstance(value, str):
                raise TypeError(f"{name}: expected str, got {value!r}")


def _several(value: str | list[str]) -> Iterable[Any]:
    return [value] if isinstance(value, str) else value


def _latencies(given: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "histogram_latencies" in given:
        found["histograms"] = given["histogram_latencies"].lower() == "true"
    if "summary_latencies" in given:
        found["summaries"] = given["summary_latencies"].lower() == "true"
    if "summary_quantiles" in given:
        found["quantiles"] = given["summary_quantiles"]
    return found


def _warn(options: Options) -> None:
    defaults = Options()
    for name in _WITHOUT_EFFECT:
        if getattr(options, name) != getattr(defaults, name):
            log.warning("the option %s has no effect in tritonpy", name)
