"""Counters without latency counters: the remaining ones are unaffected."""

from __future__ import annotations

from tests.conformance.exchange import Exchange, Families, topic
from tests.conformance.topics.metrics_families import ALL, SUM, rows

COUNTERS = Families("nv_inference_", values=True)

TOPIC = topic(
    "no latency counters",
    "add_sub queue_reject",
    [
        Exchange("before a request", (ALL,)),
        Exchange("after a request", (SUM.grpc(), COUNTERS), {"add_sub": 1}),
        Exchange("after a failure", (rows("queue_reject").grpc(), COUNTERS), {"queue_reject": 1}),
    ],
    ("--metrics-config=counter_latencies=false",),
)
