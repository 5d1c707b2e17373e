from __future__ import annotations

import logging

import pytest
import tritonserver
from tritonserver import (
    InstanceGroupKind,
    LogFormat,
    ModelControlMode,
    ModelLoadDeviceLimit,
    Options,
    RateLimiterResource,
    RateLimitMode,
)

from tritonpy.config import decode_server_config
from tritonpy_tritonserver_api.options import server_config


def test_every_option_reaches_the_configuration() -> None:
    options = Options(
        model_repository=["/one", "s3://two"],
        server_id="mine",
        model_control_mode=ModelControlMode.EXPLICIT,
        startup_models=["a", "b"],
        strict_model_config=True,
        rate_limiter_mode=RateLimitMode.EXEC_COUNT,
        rate_limiter_resources=[RateLimiterResource("r", 3, 0), RateLimiterResource("q", 2, -1)],
        pinned_memory_pool_size=5,
        cuda_memory_pool_sizes={1: 7},
        cache_config={"local": {"size": 1000}},
        cache_directory="/caches",
        min_supported_compute_capability=7,
        exit_on_error=False,
        strict_readiness=False,
        exit_timeout=3,
        model_load_thread_count=2,
        model_load_retry_count=1,
        model_namespacing=True,
        log_warn=True,
        log_format=LogFormat.ISO8601,
        log_file="/log",
        backend_directory="/backends",
        repo_agent_directory="/agents",
        model_load_device_limits=[ModelLoadDeviceLimit(InstanceGroupKind.GPU, 0, 0.5)],
        backend_configuration={"": {"isolation": "thread"}, "onnxruntime": {"x": "y"}},
        host_policies={"cpu": {"cpu-cores": "0-1"}},
        metrics_configuration={"": {"summary_latencies": "true", "summary_quantiles": "0.5:0.1"}},
    )
    config = decode_server_config(server_config(options))
    assert [each.url for each in config.repositories] == ["/one", "s3://two"]
    assert (config.id, config.exit_on_error, config.strict_readiness) == ("mine", False, False)
    assert (config.control.mode, config.control.load) == ("explicit", ["a", "b"])
    assert (config.control.threads, config.control.retries) == (2, 1)
    assert (config.exit_timeout_s, config.disable_auto_complete) == (3, True)
    assert config.model_namespacing
    assert config.rate_limit.mode == "execution_count"
    assert config.rate_limit.resources == {"r:0": 3, "q": 2}
    assert config.devices.pinned_memory_pool_byte_size == 5
    assert config.devices.cuda_pool(1) == 7
    assert config.devices.gpu_limits() == {0: 0.5}
    assert config.devices.min_supported_compute_capability == 7
    assert config.cache == {"local": {"size": 1000}}
    folders = config.cache_directory, config.backend_directory, config.repo_agent_directory
    assert folders == ("/caches", "/backends", "/agents")
    assert config.backend_defaults == {"isolation": "thread"}
    assert config.backends == {"onnxruntime": {"x": "y"}}
    assert config.host_policies["cpu"].cpu_cores == "0-1"
    assert (config.latencies.summaries, config.latencies.quantiles) == (True, "0.5:0.1")
    log = config.logging
    assert (log.info, log.warning, log.error) == (False, True, True)
    assert (log.format, log.file) == ("ISO8601", "/log")
    assert config.enabled_frontends(["http", "grpc", "metrics"]) == {}


def test_the_defaults_are_those_of_the_server_without_logs() -> None:
    config = decode_server_config(server_config(Options("/models")))
    log = config.logging
    assert (log.info, log.warning, log.error, log.verbose) == (False, False, False, 0)
    assert config.control.mode == "none"
    assert config.rate_limit.mode == "off"


def test_verbose_logs_include_every_level() -> None:
    log = decode_server_config(server_config(Options("/models", log_verbose=2))).logging
    assert (log.info, log.warning, log.error, log.verbose) == (True, True, True, 2)


def test_an_option_without_effect_causes_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tritonpy.server"):
        server_config(tritonserver.Options("/models", enable_peer_access=False))
    assert "the option enable_peer_access has no effect in tritonpy" in caplog.text
