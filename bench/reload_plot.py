"""Plot of the results of `bench.reload`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from bench.reload import Outcome


def draw(outcomes: Sequence[Outcome], file: Path) -> None:
    """Plot latencies over time, replacements marked, and the share of slower requests."""
    figure, rows = plt.subplots(
        len(outcomes), 2, figsize=(13, 3 * len(outcomes)), layout="constrained", squeeze=False
    )
    for outcome, (over_time, tail) in zip(outcomes, rows, strict=True):
        start = outcome.periods[0].start_s
        for period in outcome.periods:
            if period.replaced:
                over_time.axvspan(
                    period.start_s - start, period.end_s - start, color="tab:orange", alpha=0.12
                )
        for moment, _ in outcome.switches:
            over_time.axvline(moment - start, ymax=0.05, color="tab:red", lw=0.8)
        over_time.scatter(
            [each.due - start for each in outcome.responses],
            [1e3 * each.latency_s for each in outcome.responses],
            s=2,
        )
        over_time.set(title=outcome.name, xlabel="s", ylabel="ms", ylim=(0, None))
        for replaced, name in ((False, "quiet"), (True, "replacing")):
            taken = np.sort(np.concatenate(outcome.latencies(replaced=replaced)))
            tail.step(taken, 1 - np.arange(len(taken)) / len(taken), label=name)
        tail.axhline(0.01, color="grey", ls=":")
        tail.set(xlabel="ms", ylabel="share that took longer", xscale="log", yscale="log")
        tail.legend()
    figure.savefig(file)
