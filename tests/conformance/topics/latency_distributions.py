"""Histograms and summaries of latencies, enabled on both servers."""

from __future__ import annotations

from tests.conformance.exchange import Exchange, Families, topic
from tests.conformance.inference import streamed
from tests.conformance.topics.metrics_families import ALL, REPEAT, SUM, concurrent, rows

FLAGS = (
    "--metrics-config=histogram_latencies=true",
    "--metrics-config=summary_latencies=true",
    "--metrics-config=summary_quantiles=0.5:0.05,0.95:0.001",
    "--allow-cpu-metrics=false",
)

TOPIC = topic(
    "latency distributions",
    "add_sub repeat queue_reject queue_preferred",
    [
        Exchange("before a request", (ALL,)),
        Exchange(
            "requests", (streamed(SUM), SUM.grpc(), streamed(REPEAT)), {"add_sub": 2, "repeat": 1}
        ),
        concurrent(
            "a batch", "queue_preferred", rows("queue_preferred"), rows("queue_preferred", 3)
        ),
        concurrent("waits too long", "queue_reject", rows("queue_reject")),
        Exchange("after requests", (Families("nv_inference_request_summary"), ALL)),
    ],
    FLAGS,
)
