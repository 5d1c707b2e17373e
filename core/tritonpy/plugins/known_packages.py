"""The packages that provide known names, for hints in errors."""

from __future__ import annotations

from tritonpy.api.device import CUDA_PACKAGE
from tritonpy.config import known_backends

PACKAGES = {
    "tritonpy_schedulers": {
        "dynamic": "tritonpy-batching-dynamic",
        "sequence": "tritonpy-batching-sequence",
        "ensemble": "tritonpy-ensemble",
    },
    "tritonpy_repositories": {
        "s3": "tritonpy-repo-cloud[s3]",
        "gs": "tritonpy-repo-cloud[gs]",
        "as": "tritonpy-repo-cloud[as]",
    },
    "tritonpy_frontends": {
        "http": "tritonpy-frontend-http",
        "grpc": "tritonpy-frontend-h2",
        "metrics": "tritonpy-metrics-prometheus",
    },
    "tritonpy_transports": {"grpcio": "tritonpy-frontend-grpc"},
    "tritonpy_authenticators": {"api_keys": "tritonpy-auth-api-keys", "jwt": "tritonpy-auth-jwt"},
    "tritonpy_batch_policies": {"preferred": "tritonpy-batching-dynamic", "slo": "tritonpy-batching-slo"},
    "tritonpy_sharings": {"fair": "tritonpy-queueing-fair"},
    "tritonpy_routers": {"traffic": "tritonpy-traffic"},
    "tritonpy_trace_sinks": {"opentelemetry": "tritonpy-trace-otel"},
    "tritonpy_caches": {"local": "tritonpy-cache-local", "redis": "tritonpy-cache-redis"},
    "tritonpy_repo_agents": {"checksum": "tritonpy-agent-checksum", "sealed": "tritonpy-agent-sealed"},
    "tritonpy_devices": {"cuda": CUDA_PACKAGE},
    "tritonpy_commands": {
        "api-key": "tritonpy-auth-api-keys",
        "bench": "tritonpy-bench",
        "debug": "tritonpy-backend-python",
        "seal": "tritonpy-agent-sealed",
    },
}


def package_of(hook: str, name: str) -> str | None:
    """Return the distribution that provides `name`, or None if it is unknown."""
    if hook == "tritonpy_backends":
        return known_backends.package_of(name)
    return PACKAGES.get(hook, {}).get(name)
