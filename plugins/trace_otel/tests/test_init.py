from __future__ import annotations

import subprocess
import sys

import tritonpy_trace_otel
from tritonpy.plugins import make_plugin_manager


def test_the_plugin_is_found_by_its_mode() -> None:
    entry = make_plugin_manager().table("tritonpy_trace_sinks")["opentelemetry"]
    assert entry.owner == "tritonpy-trace-otel"
    assert tritonpy_trace_otel.tritonpy_trace_sinks() == {
        "opentelemetry": "tritonpy_trace_otel.sink:OpenTelemetrySink"
    }


def test_a_server_in_another_mode_does_not_import_opentelemetry() -> None:
    code = (
        "import sys\n"
        "from tritonpy_config.server import decode_server_config\n"
        "from tritonpy.server.server import build\n"
        "build(decode_server_config({}))\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
