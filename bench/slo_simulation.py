"""Judges the batch policy "slo" in simulated time: `python -m bench.slo_simulation [--plot FILE]`. The same figures on every machine.

Each load runs with the policy and with every setting of the policy "preferred" that somebody might have tuned by hand: queue delays and
preferred sizes. The costs of batches are those that `bench.record_costs` recorded.
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
WARM = 0.2  # of the time, before anything is counted: what the policy learns in
_SECOND = 1e9


@dataclass(frozen=True)
class Case:
    """A model under a load that its clients keep up: as many requests are open as there are clients."""

    model: str
    clients: int
    target_ms: float
    seconds: float
    instances: int = 1
    sizes: tuple[int, ...] = (16, 32, 64)

    @property
    def name(self) -> str:
        """Say what it is, for a table."""
        return f"{self.model}, {self.clients} clients, {self.instances} instances"

    def load(self, seed: int = 0) -> Load:
        """Return the load."""
        return Load(self.seconds, self.clients, seed=seed)


FULL = (
    Case("deep", 64, 2.0, 0.12),
    Case("wide", 32, 25.0, 2.0),
    Case("convolution", 64, 2.0, 0.12),
    Case("deep", 64, 1.5, 0.1, instances=2),
    Case("wide", 64, 30.0, 2.0, instances=2),
    Case("convolution", 96, 2.0, 0.1, instances=2),
)


@dataclass(frozen=True)
class Figures:
    """What the clients saw once the policy had learnt."""

    throughput: float
    p99_ms: float
    setting: str = ""

    @classmethod
    def of(cls, outcome: Outcome, setting: str = "") -> Figures:
        """Return those of an outcome."""
        counted = outcome.between(WARM, 1)
        return cls(counted.throughput, counted.quantile_ms(0.99), setting)


@dataclass
class Verdict:
    """The policy beside the best that hands can tune."""

    case: Case
    slo: Figures
    tuned: list[Figures] = field(default_factory=list)

    @property
    def best(self) -> Figures:
        """The setting with the highest throughput, whatever its latency."""
        return max(self.tuned, key=lambda figures: figures.throughput)

    @property
    def share(self) -> float:
        """The policy's throughput over the best."""
        return self.slo.throughput / self.best.throughput

    def __str__(self) -> str:
        best, slo = self.best, self.slo
        return (
            f"{self.case.name:34} target {self.case.target_ms:5.1f} ms   slo {slo.throughput:7.0f}/s p99 {slo.p99_ms:5.2f} ms"
            f"   best {best.throughput:7.0f}/s p99 {best.p99_ms:5.2f} ms ({best.setting})   {self.share:.2f}"
        )


def slo(target_ms: float, model: str, instances: int = 1, factor: Callable[[int], float] = lambda _: 1.0) -> Simulation:
    """Return a model with the policy "slo"."""
    config = f'max_batch_size: {LARGEST} parameters {{ key: "slo_ms" value {{ string_value: "{target_ms}" }} }}'
    return Simulation(f"{config} dynamic_batching {{ }}", SloPolicy, Costs(model, factor=factor), instances)


def preferred(delay_us: int, size: int, model: str, instances: int = 1) -> Simulation:
    """Return a model with the policy "preferred"; size 0 names none."""
    sizes = f"preferred_batch_size: {size}" if size else ""
    config = f"max_batch_size: {LARGEST} dynamic_batching {{ max_queue_delay_microseconds: {delay_us} {sizes} }}"
    return Simulation(config, PreferredPolicy, Costs(model), instances)


def judge(case: Case) -> Verdict:
    """Run a case with the policy and with everything that hands might try."""
    verdict = Verdict(case, Figures.of(slo(case.target_ms, case.model, case.instances).run(case.load())))
    for delay_us, size in product(DELAYS_US, (0, *case.sizes)):
        outcome = preferred(delay_us, size, case.model, case.instances).run(case.load())
        verdict.tuned.append(Figures.of(outcome, f"delay {delay_us} us" + (f", size {size}" if size else "")))
    return verdict


def capacity(model: str) -> float:
    """Return how many requests per second one instance gets through in the largest batches."""
    return LARGEST * _SECOND / Costs(model).typical(LARGEST)


def steady(model: str, share: float, batches: int = 200) -> Load:
    """Return a load of independent clients that need that share of the capacity, for as long as so many full batches take."""
    seconds = batches * LARGEST / capacity(model)
    return Load(seconds, times=poisson(share * capacity(model), 0, seconds, Random(1)))


def bursty(model: str, share: float, batches: int = 200) -> Load:
    """Return one that comes in bursts of three times its mean, a third of the time."""
    random, mean = Random(2), share * capacity(model)
    seconds = batches * LARGEST / capacity(model)
    length = seconds / 30
    times = [
        at
        for burst in range(10)
        for at in poisson(3 * mean, 3 * burst * length, (3 * burst + 1) * length, random)
    ]  # fmt: skip
    return Load(seconds, times=times)


def dearer(load: Load, factor: float) -> Callable[[int], float]:
    """Return what makes batches `factor` times as dear in the second half of a load."""
    return lambda now_ns: factor if now_ns > load.end_ns / 2 else 1.0


def series(outcome: Outcome, steps: int = 40) -> Iterator[tuple[float, float, float]]:
    """Yield time (s), throughput and p99 (ms) over the course of a run."""
    for step in range(steps):
        part = outcome.between(step / steps, (step + 1) / steps)
        if part.answered:
            yield (step + 0.5) / steps * outcome.end_ns / _SECOND, part.throughput, part.quantile_ms(0.99)


def main() -> int:
    """Print the table; 1 where a target was missed or the throughput fell short of 90 %."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, help="write an SVG of it (needs matplotlib)")
    arguments = parser.parse_args()
    verdicts = [judge(case) for case in FULL]
    print(*verdicts, sep="\n")
    if arguments.plot:
        from bench.slo_plot import draw

        draw(verdicts, arguments.plot)
    return int(any(each.slo.p99_ms > each.case.target_ms or each.share < 0.9 for each in verdicts))


if __name__ == "__main__":
    raise SystemExit(main())
