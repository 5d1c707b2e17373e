"""The core's own plugin: local repositories, threads for instances, trace files, a command.

It is registered through the same hooks as any other plugin.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy.hookspecs import hookimpl


@hookimpl
def tritonpy_repositories() -> Mapping[str, str]:
    return {"file": "tritonpy.repository.local:LocalRepository"}


@hookimpl
def tritonpy_runners() -> Mapping[str, str]:
    return {"thread": "tritonpy.runners.local:LocalRunnerFactory"}


@hookimpl
def tritonpy_rate_limiters() -> Mapping[str, str]:
    return {"off": "tritonpy.api.rate_limiter:NoRateLimiter"}


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    return {"plugins": "tritonpy.cli:PluginsCommand"}


@hookimpl
def tritonpy_trace_sinks() -> Mapping[str, str]:
    return {"triton": "tritonpy.tracing.file_sink:FileSink"}
