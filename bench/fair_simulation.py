"""Simulation of one greedy and three modest tenants, with and without fair queueing.

Run with `python -m bench.fair_simulation [--plot FILE]`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random

from bench.discrete_events import Costs, Load, Outcome, Simulation, poisson
from tritonpy import InferRequest
from tritonpy_batching_dynamic.preferred import PreferredPolicy
from tritonpy_queueing_fair.fair_queue import FairQueue

MODEL, SIZE, SECONDS = "wide", 8, 3.0
CONFIG = f"max_batch_size: {SIZE} dynamic_batching {{ }}"
GREEDY, MODEST = "greedy", ("one", "two", "three")
TENANTS = (GREEDY, *MODEST)


def capacity() -> float:
    """Return the model's maximum requests per second."""
    return SIZE * 1e9 / Costs(MODEL).typical(SIZE)


def run(fair: bool) -> dict[str, Outcome]:
    """Return the outcome per tenant: one requests twice the capacity, the others a tenth each."""
    rates = dict.fromkeys(MODEST, 0.1 * capacity()) | {GREEDY: 2 * capacity()}
    times = {tenant: poisson(rate, 0, SECONDS, Random(tenant)) for tenant, rate in rates.items()}
    new_queue = (lambda: FairQueue(_tenant, lambda _: 1.0)) if fair else None
    simulation = Simulation(CONFIG, PreferredPolicy, Costs(MODEL), new_queue=new_queue)
    return simulation.run_tenants(times, Load(SECONDS))


def _tenant(request: InferRequest) -> str:
    return str(request.id)


def main() -> None:
    """Run the simulation and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, help="write a plot to this file (needs matplotlib)")
    arguments = parser.parse_args()
    found = {"first in, first out": run(fair=False), "fair": run(fair=True)}
    for order, outcomes in found.items():
        for tenant, outcome in outcomes.items():
            print(
                f"{order:20} {tenant:8} {outcome.throughput:6.0f}/s   p99 "
                f"{outcome.quantile_ms(0.99):8.1f} ms"
            )
    if arguments.plot:
        _draw(found, arguments.plot)


def _draw(found: dict[str, dict[str, Outcome]], file: Path) -> None:
    import matplotlib.pyplot as plt

    figure, rows = plt.subplots(1, len(found), figsize=(9, 3.5), layout="constrained", sharey=True)
    for (order, outcomes), axes in zip(found.items(), rows, strict=True):
        for tenant, outcome in outcomes.items():
            at, latency = zip(*outcome.responses, strict=True)
            axes.plot(
                [each / 1e9 for each in at], [each / 1e6 for each in latency], label=tenant, lw=0.8
            )
        axes.set(title=order, xlabel="s", ylabel="latency, ms", yscale="log", xlim=(0, SECONDS))
        axes.legend()
    figure.savefig(file)


if __name__ == "__main__":
    main()
