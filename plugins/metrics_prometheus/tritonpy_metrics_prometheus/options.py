"""What the metrics frontend can be told."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tritonpy import HttpConnectionOptions


class MetricsOptions(HttpConnectionOptions, frozen=True):
    """Options under `frontends: metrics:` of server.yaml."""

    port: Annotated[int, Meta(ge=0, le=65535, description="Port of the metrics; 0 takes a free one.")] = 8002
    host: Annotated[str, Meta(description="Address to listen on; empty means the server's.")] = ""
    cpu: Annotated[bool, Meta(description="Show the CPU and memory of the machine (Linux only).")] = True
    gpu: Annotated[bool, Meta(description="Show the GPUs, where there are any and nvidia-ml-py is installed.")] = True
    interval_ms: Annotated[
        int, Meta(ge=1, description="Shortest time in ms between two readings of the GPUs and of the CPU utilization.")
    ] = 2000
    counter_latencies: Annotated[
        bool,
        Meta(
            description="Show the latency counters; false leaves them out and, as in Triton, stops every other counter at 0."
        ),
    ] = True
