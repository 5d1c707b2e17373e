"""Creation of a server's tracing from its configuration."""

from __future__ import annotations

from typing import Any

from tritonpy.api.trace_settings import TraceSettings
from tritonpy.api.trace_sink import TraceSink
from tritonpy.config.server import decode_options
from tritonpy.config.server.trace_config import TraceConfig
from tritonpy.plugins import PluginManager
from tritonpy.tracing.tracing import Tracing


def make_tracing(config: TraceConfig, plugins: PluginManager) -> Tracing:
    """Return the tracer that `config` describes.

    Raises PluginError for an unknown mode, InvalidServerConfig for invalid options.
    """
    kind: Any = plugins.get("tritonpy_trace_sinks", config.mode, "trace mode").load()
    options = decode_options(kind.Options, config.modes.get(config.mode, {}), f"trace.modes.{config.mode}")
    sink: TraceSink = kind(options)
    start = TraceSettings(
        level=[] if "OFF" in config.level else list(config.level),
        rate=config.rate,
        count=config.count,
        log_frequency=getattr(options, "log_frequency", 0),
        file=getattr(options, "file", ""),
        mode=config.mode,
        options=dict(sink.public_options()),
    )
    return Tracing(sink, start)
