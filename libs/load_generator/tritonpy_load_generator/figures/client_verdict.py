"""Warnings about measurements that the client limited instead of the server."""

from __future__ import annotations

from tritonpy_load_generator.figures.snapshot import Snapshot

BUSY = 0.9
STARVED = 0.1
BEHIND = 0.95
LATE_SHARE = 0.25
LATE_NS = 500_000


def client_warnings(snapshot: Snapshot, intended_rate: float | None) -> list[str]:
    """Return warnings about the client; `intended_rate` is in requests/s, None in a closed loop.

    They report a client process that uses 90 % of a core, or waits for a core 10 % of the time.
    They report a rate below 95 % of the intended one. They report a late client, if its lateness
    (99th percentile) exceeds half a millisecond and a quarter of the median latency.
    """
    found = []
    if snapshot.busiest >= BUSY:
        found.append(
            f"the client was the bottleneck: its busiest process used {snapshot.busiest:.0%} of "
            "a core; "
            "more --client-processes, or another machine, may show a faster server"
        )
    if snapshot.starved >= STARVED:
        found.append(
            "this machine was too busy for the client: it was ready to run but had no processor "
            f"for {snapshot.starved:.0%} of the time, "
            "which the latencies include"
        )
    started = snapshot.started / max(snapshot.seconds, 1e-9)
    if intended_rate is not None and started < intended_rate * BEHIND:
        found.append(
            f"only {started:.0f} of {intended_rate:.0f} requests/s were sent: "
            f"{_rate_shortfall_reason(snapshot)}"
        )
    late = snapshot.late.percentile(99)
    if late > LATE_NS and late > snapshot.latency.percentile(50) * LATE_SHARE:
        found.append(
            f"the generator itself was late: 1 % of the requests by more than {late / 1e6:.2f} "
            "ms, which their latency includes"
        )
    return found


def _rate_shortfall_reason(snapshot: Snapshot) -> str:
    if snapshot.unsent:
        return (
            f"{snapshot.unsent} wait for a free connection or sequence (--max-in-flight, "
            "--num-of-sequences)"
        )
    return "the client could not start them in time"
