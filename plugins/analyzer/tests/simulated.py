"""A simulated server with a known law of cost, drift and noise, measured in simulated time."""

from __future__ import annotations

import asyncio
import heapq
import math
import random
from bisect import bisect_right

from tritonpy_analyzer.cost_model import Execution
from tritonpy_analyzer.findings import SearchOptions
from tritonpy_analyzer.measuring import LoadWindow
from tritonpy_analyzer.search import Search
from tritonpy_analyzer.space import BATCH, BATCHING, DELAY, INSTANCES, Limits, make_space
from tritonpy_load_generator.figures.histogram import make_histogram

MODEL = "toy"
LIMITS = Limits(32, 6)
SETTLE_S = 0.3  # the load before a window, which is not counted


def toy_space(batch=4, instances=1, limits=LIMITS, dynamic=True):
    config = {"max_batch_size": batch, "instance_group": [{"count": instances}]}
    if dynamic:
        config["dynamic_batching"] = {}
    return make_space({MODEL: config}, {}, limits)


class Law:
    """An execution of n rows takes (fixed + row * n) * (1 + penalty * (instances - 1))."""

    def __init__(self, fixed_s=0.004, row_s=0.0006, penalty=0.35):
        self.fixed_s, self.row_s, self.penalty = fixed_s, row_s, penalty

    def seconds(self, batch, instances):
        return (self.fixed_s + self.row_s * batch) * (1 + self.penalty * (instances - 1))


class SimulatedMeasurer:
    """Measures by simulating the queue; `drift` is the relative slowdown of a square wave."""

    def __init__(self, law, seed=1, drift=0.0, noise=0.02, drop_every=0):
        self._law = law
        self._rng = random.Random(seed)
        self._drift, self._noise, self._drop_every = drift, noise, drop_every
        self.period_s = 7.0 + 6 * self._rng.random()
        self.elapsed_s = 0.0
        self.windows = 0

    async def measure(self, candidate, level, seconds):
        values = candidate.of(MODEL)
        slow = 1 + (
            self._drift if math.sin(2 * math.pi * self.elapsed_s / self.period_s) > 0 else 0
        )
        slow *= math.exp(self._rng.gauss(0, self._noise))
        self.elapsed_s += seconds + SETTLE_S + 0.1
        self.windows += 1
        latencies, executions, completed = simulate(
            self._law, values, level, seconds, slow, random.Random(level.seed)
        )
        instances = int(values[INSTANCES])
        ns = make_histogram([int(each * 1e9) for each in latencies])
        return LoadWindow(
            candidate=candidate.key,
            level=level,
            seconds=seconds,
            succeeded=completed,
            latencies={MODEL: ns},
            overloaded=bool(latencies) and max(latencies) > 2.0,
            executions=tuple(
                Execution(
                    instances, batch, count, count * self._law.seconds(batch, instances) * slow
                )
                for batch, count in executions.items()
            ),
            memory_cpu=(100 + 50 * instances) << 20,
            dropped="busy" if self._drop_every and self.windows % self._drop_every == 0 else "",
            ended_s=self.elapsed_s,
        )


def simulate(law, values, level, seconds, slow, rng):
    """Return the latencies, the executions by batch size, and the requests completed in time."""
    batch = int(values[BATCH]) if values[BATCHING] else 1
    instances, delay = int(values[INSTANCES]), float(values[DELAY]) / 1e6
    executions: dict[int, int] = {}

    def run(size):
        executions[size] = executions.get(size, 0) + 1
        return law.seconds(size, instances) * slow * (1 + 0.02 * rng.random())

    if not level.open_loop:
        ready = [0.0] * int(level.value)  # when each client sends its next request
        free, latencies = [0.0] * instances, []
        while free[0] < seconds and len(latencies) < 20_000:
            first = heapq.heappop(ready)
            start, members = max(free[0], first), [first]
            while ready and ready[0] <= start and len(members) < batch:
                members.append(heapq.heappop(ready))
            end = start + run(len(members))
            heapq.heapreplace(free, end)
            for at in members:
                latencies.append(end - at)
                heapq.heappush(ready, end)
        return latencies, executions, len(latencies)
    arrivals, at = [], 0.0
    while at < seconds + SETTLE_S:
        at += rng.expovariate(level.value)
        arrivals.append(at)
    free, latencies, first, completed = [0.0] * instances, [], 0, 0
    while first < len(arrivals):
        start = max(free[0], arrivals[first])
        if delay and batch > 1:
            full = arrivals[first + batch - 1] if first + batch <= len(arrivals) else math.inf
            start = max(start, min(full, arrivals[first] + delay))
        last = bisect_right(arrivals, start, first + 1, min(first + batch, len(arrivals)))
        end = start + run(last - first)
        heapq.heapreplace(free, end)
        latencies += [end - each for each in arrivals[first:last] if each > SETTLE_S]
        completed += last - first if SETTLE_S < end <= seconds + SETTLE_S else 0
        first = last
    return latencies, executions, completed


def true_rate(law, candidate, limit_s, share=0.01, requests=40_000):
    """Return the highest rate within the limit, from a long simulation without noise."""
    from tritonpy_load_generator.options import LoadLevel

    low, high = math.log(1.0), math.log(20_000.0)
    for _ in range(14):
        middle = (low + high) / 2
        rate = math.exp(middle)
        level = LoadLevel(rate, "poisson")
        latencies, _, _ = simulate(
            law, candidate.of(MODEL), level, requests / rate, 1.0, random.Random(5)
        )
        above = sum(each > limit_s for each in latencies)
        low, high = (middle, high) if above <= share * len(latencies) else (low, middle)
    return math.exp(low)


class QuietView:
    def __init__(self):
        self.lines = []

    def phase(self, text):
        self.lines.append(text)

    def progress(self, elapsed_s, best):
        pass

    def verdict(self, text):
        self.lines.append(text)


def run_search(space, goals, measurer, **options):
    async def main():
        search = Search(
            space, goals, measurer, SearchOptions(**options), QuietView(), asyncio.Event()
        )
        await search.run()
        return search

    return asyncio.run(main())
