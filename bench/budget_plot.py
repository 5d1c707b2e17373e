"""Plot of the results of `bench.budget`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from bench.budget import Result


def draw(results: Sequence[Result], file: Path) -> None:
    """Plot hit rates over capacity for each kind of traffic into `file`."""
    kinds = list(dict.fromkeys(each.traffic for each in results))
    figure, rows = plt.subplots(
        1, len(kinds), figsize=(5 * len(kinds), 4), layout="constrained", squeeze=False
    )
    for kind, axes in zip(kinds, rows[0], strict=True):
        of_kind = [each for each in results if each.traffic == kind]
        capacities = sorted({each.capacity for each in of_kind})
        axes.plot(
            capacities,
            [_of(of_kind, capacity).best for capacity in capacities],
            c="grey",
            ls=":",
            label="best possible",
        )
        axes.plot(
            capacities,
            [_of(of_kind, capacity).simulated for capacity in capacities],
            c="tab:blue",
            label="LRU, simulated",
        )
        for clients, marker in zip(sorted({each.clients for each in of_kind}), "x+", strict=False):
            measured = [each for each in of_kind if each.clients == clients]
            label = f"server, {clients} client" + ("s" if clients > 1 else "")
            axes.scatter(
                [each.capacity for each in measured],
                [each.measured for each in measured],
                marker=marker,
                s=60,
                c="tab:red",
                label=label,
            )
        axes.set(
            title=f"{kind} traffic, 50 models",
            xlabel="models that fit",
            ylabel="hit rate",
            ylim=(0, 1),
            xlim=(0, None),
        )
        axes.legend(fontsize=8)
    figure.savefig(file)


def _of(results: Sequence[Result], capacity: int) -> Result:
    return next(each for each in results if each.capacity == capacity)
