"""Plot of the results of `bench.slo_simulation`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt

from bench.slo_simulation import Verdict, bursty, cost_increase, series, slo, steady

MODEL, TARGET_MS = "wide", 60.0


def draw(verdicts: Sequence[Verdict], file: Path) -> None:
    """Plot throughput over latency for each case, and three loads over time, into `file`."""
    columns = len(verdicts) // 2
    figure, rows = plt.subplots(3, columns, figsize=(4.5 * columns, 11), layout="constrained")
    for verdict, axes in zip(verdicts, rows[:2].ravel(), strict=True):
        axes.scatter(
            [each.p99_ms for each in verdict.tuned],
            [each.throughput for each in verdict.tuned],
            s=12,
            c="grey",
            label="preferred, tuned by hand",
        )
        axes.scatter(
            [verdict.slo.p99_ms],
            [verdict.slo.throughput],
            c="tab:red",
            marker="*",
            s=120,
            label="slo",
        )
        axes.axvline(verdict.case.target_ms, c="tab:red", ls=":", label="target")
        axes.set(
            title=verdict.case.name,
            xlabel="p99, ms",
            ylabel="requests per second",
            xlim=(0, None),
            ylim=(0, None),
        )
        axes.legend(fontsize=7)
    steady_load = steady(MODEL, 0.4)
    loads = {
        "bursts": (slo(TARGET_MS, MODEL), bursty(MODEL, 0.25)),
        "1.3 times the capacity": (slo(TARGET_MS, MODEL), steady(MODEL, 1.3)),
        "batch cost doubles": (
            slo(TARGET_MS, MODEL, factor=cost_increase(steady_load, 2.0)),
            steady_load,
        ),
    }
    for (name, (simulation, load)), axes in zip(loads.items(), rows[2], strict=False):
        times, rates, quantiles = zip(*series(simulation.run(load)), strict=True)
        axes.plot(times, rates, c="tab:blue")
        axes.set(title=f"{MODEL}: {name}", xlabel="s", ylabel="requests per second")
        late = axes.twinx()
        late.plot(times, quantiles, c="tab:red")
        late.axhline(TARGET_MS, c="tab:red", ls=":")
        late.set(ylabel="p99, ms", ylim=(0, None))
    figure.savefig(file)
