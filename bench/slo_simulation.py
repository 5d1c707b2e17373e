"""Simulation of the batch policy "slo": `python -m bench.slo_simulation [--plot FILE]`.

The results are equal on every machine. Each load runs with the policy "slo" and with all plausible
settings of the policy "preferred": queue delays and preferred sizes. `bench.record_costs` recorded
the batch durations.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random

from bench.discrete_events import Costs, Load, Outcome, Simulation, poisson
from tritonpy_batching_dynamic.preferred import PreferredPolicy
from tritonpy_batching_slo.policy import SloPolicy

LARGEST = 64
DELAYS_US = (0, 200, 500, 2000, 5000)
WARM = 0.2  # share of the time before results count, while the policy learns
_SECOND = 1e9


@dataclass(frozen=True)
class Case:
    """A model under a closed loop of `clients`, each with one request in flight."""

    model: str
    clients: int
    target_ms: float
    seconds: float
    instances: int = 1
    sizes: tuple[int, ...] = (16, 32, 64)

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.model}, {self.clients} clients, {self.instances} instances"

    def load(self, seed: int = 0) -> Load:
        """Return the load."""
        return Load(self.seconds, self.clients, seed=seed)


CASES = (
    Case("deep", 64, 2.0, 0.12),
    Case("wide", 32, 25.0, 2.0),
    Case("convolution", 64, 2.0, 0.12),
    Case("deep", 64, 1.5, 0.1, instances=2),
    Case("wide", 64, 30.0, 2.0, instances=2),
    Case("convolution", 96, 2.0, 0.1, instances=2),
)


@dataclass(frozen=True)
class Figures:
    """Results after the warm-up."""

    throughput: float
    p99_ms: float
    setting: str = ""

    @classmethod
    def of(cls, outcome: Outcome, setting: str = "") -> Figures:
        """Return the results of an outcome."""
        counted = outcome.between(WARM, 1)
        return cls(counted.throughput, counted.quantile_ms(0.99), setting)


@dataclass
class Verdict:
    """The policy "slo" and the hand-tuned settings."""

    case: Case
    slo: Figures
    tuned: list[Figures] = field(default_factory=list)

    @property
    def best(self) -> Figures:
        """The setting with the highest throughput, independent of its latency."""
        return max(self.tuned, key=lambda figures: figures.throughput)

    @property
    def share(self) -> float:
        """The policy's throughput divided by the best one."""
        return self.slo.throughput / self.best.throughput

    def __str__(self) -> str:
        best, slo = self.best, self.slo
        return (
            f"{self.case.name:34} target {self.case.target_ms:5.1f} ms   slo "
            f"{slo.throughput:7.0f}/s p99 {slo.p99_ms:5.2f} ms"
            f"   best {best.throughput:7.0f}/s p99 {best.p99_ms:5.2f} ms ({best.setting})   "
            f"{self.share:.2f}"
        )


def slo(
    target_ms: float, model: str, instances: int = 1, factor: Callable[[int], float] = lambda _: 1.0
) -> Simulation:
    """Return the simulation of a model with the policy "slo"."""
    config = (
        f'max_batch_size: {LARGEST} parameters {{ key: "slo_ms" value {{ string_value: '
        f'"{target_ms}" }} }}'
    )
    return Simulation(
        f"{config} dynamic_batching {{ }}", SloPolicy, Costs(model, factor=factor), instances
    )


def preferred(delay_us: int, size: int, model: str, instances: int = 1) -> Simulation:
    """Return a simulation with the policy "preferred"; size 0 sets no preferred size."""
    sizes = f"preferred_batch_size: {size}" if size else ""
    config = (
        f"max_batch_size: {LARGEST} dynamic_batching {{ max_queue_delay_microseconds: "
        f"{delay_us} {sizes} }}"
    )
    return Simulation(config, PreferredPolicy, Costs(model), instances)


def judge(case: Case) -> Verdict:
    """Run a case with the policy "slo" and with all hand-tuned settings."""
    verdict = Verdict(
        case, Figures.of(slo(case.target_ms, case.model, case.instances).run(case.load()))
    )
    for delay_us, size in product(DELAYS_US, (0, *case.sizes)):
        outcome = preferred(delay_us, size, case.model, case.instances).run(case.load())
        verdict.tuned.append(
            Figures.of(outcome, f"delay {delay_us} us" + (f", size {size}" if size else ""))
        )
    return verdict


def capacity(model: str) -> float:
    """Return the requests per second of one instance with the largest batches."""
    return LARGEST * _SECOND / Costs(model).typical(LARGEST)


def steady(model: str, share: float, batches: int = 200) -> Load:
    """Return Poisson arrivals at a share of the capacity, for `batches` full batches."""
    seconds = batches * LARGEST / capacity(model)
    return Load(seconds, times=poisson(share * capacity(model), 0, seconds, Random(1)))


def bursty(model: str, share: float, batches: int = 200) -> Load:
    """Return arrivals in bursts of three times the mean rate, a third of the time."""
    random, mean = Random(2), share * capacity(model)
    seconds = batches * LARGEST / capacity(model)
    length = seconds / 30
    times = [
        at
        for burst in range(10)
        for at in poisson(3 * mean, 3 * burst * length, (3 * burst + 1) * length, random)
    ]  # fmt: skip
    return Load(seconds, times=times)


def cost_increase(load: Load, factor: float) -> Callable[[int], float]:
    """Return a function that raises batch costs by `factor` in the second half of a load."""
    return lambda now_ns: factor if now_ns > load.end_ns / 2 else 1.0


def series(outcome: Outcome, steps: int = 40) -> Iterator[tuple[float, float, float]]:
    """Yield time (s), throughput and p99 (ms) over a run."""
    for step in range(steps):
        part = outcome.between(step / steps, (step + 1) / steps)
        if part.responses:
            yield (
                (step + 0.5) / steps * outcome.end_ns / _SECOND,
                part.throughput,
                part.quantile_ms(0.99),
            )


def main() -> int:
    """Print the table; return 1 if a target is missed or throughput is below 90 % of the best."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, help="write a plot to this file (needs matplotlib)")
    arguments = parser.parse_args()
    verdicts = [judge(case) for case in CASES]
    print(*verdicts, sep="\n")
    if arguments.plot:
        from bench.slo_plot import draw

        draw(verdicts, arguments.plot)
    return int(any(each.slo.p99_ms > each.case.target_ms or each.share < 0.9 for each in verdicts))


if __name__ == "__main__":
    raise SystemExit(main())
