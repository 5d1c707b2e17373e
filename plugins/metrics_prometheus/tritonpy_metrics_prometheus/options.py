"""Options of the metrics frontend."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tritonpy.frontend import HttpConnectionOptions


class MetricsOptions(HttpConnectionOptions, frozen=True):
    """Options under `frontends: metrics:` of server.yaml."""

    port: Annotated[
        int, Meta(ge=0, le=65535, description="Port of the metrics; 0 selects a free one.")
    ] = 8002
    host: Annotated[str, Meta(description="Address to listen on; default: the server's.")] = ""
    cpu: Annotated[
        bool, Meta(description="Export CPU and memory metrics of the machine (Linux only).")
    ] = True
    gpu: Annotated[
        bool, Meta(description="Export GPU metrics, if a GPU and nvidia-ml-py are available.")
    ] = True
    interval_ms: Annotated[
        int,
        Meta(
            ge=1,
            description="Minimum ms between two readings of the GPUs and of the CPU utilization.",
        ),
    ] = 2000
    counter_latencies: Annotated[
        bool,
        Meta(
            description=(
                "Export latency counters; false omits them and, as in Triton, "
                "keeps all other counters at 0."
            )
        ),
    ] = True
