"""Discrete-event simulation of a server: a real scheduler and batch policy in simulated time."""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from google.protobuf import text_format

from tritonpy import Batch, CallbackSink, InferRequest
from tritonpy.scheduling import BatchPolicy, SchedulerContext, WaitingQueue
from tritonpy_batching_dynamic.scheduler import DynamicScheduler
from tritonpy_protos.model_config_pb2 import ModelConfig

COSTS = Path(__file__).with_name("costs")
_SECOND = 10**9


class Costs:
    """Recorded durations of a model's batches; `factor(now_ns)` scales them over time."""

    def __init__(
        self, name: str, seed: int = 0, factor: Callable[[int], float] = lambda _: 1.0
    ) -> None:
        recorded: dict[str, list[float]] = json.loads(
            (COSTS / f"{name}.json").read_text(encoding="utf-8")
        )
        self._recorded = {int(size): sorted(each) for size, each in recorded.items()}
        self._random = Random(seed)
        self._factor = factor

    def draw(self, rows: int, now_ns: int) -> int:
        """Return a random duration (ns) of a batch of `rows`, interpolated between sizes."""
        at = self._random.random()
        return int(self.typical(rows, at) * self._factor(now_ns))

    def typical(self, rows: int, quantile: float = 0.5) -> float:
        """Return a quantile of the duration in ns of a batch of `rows`."""
        below = max(size for size in self._recorded if size <= rows)
        above = min(size for size in self._recorded if size >= rows)
        low, high = (self._quantile(size, quantile) for size in (below, above))
        return low if above == below else low + (high - low) * (rows - below) / (above - below)

    def _quantile(self, size: int, quantile: float) -> float:
        recorded = self._recorded[size]
        return 1e3 * recorded[min(int(quantile * len(recorded)), len(recorded) - 1)]


@dataclass
class Load:
    """`clients` that send again shortly after a response, and requests at `times` (ns)."""

    seconds: float
    clients: int = 0
    turnaround_ns: int = 200_000
    times: Sequence[int] = ()
    seed: int = 0

    @property
    def end_ns(self) -> int:
        """The time of the last request."""
        return int(self.seconds * _SECOND)


@dataclass
class Outcome:
    """Times and latencies of responses in ns, and the sizes of batches."""

    end_ns: int
    responses: list[tuple[int, int]] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def between(self, first: float, last: float) -> Outcome:
        """Return the outcome between two fractions of the run."""
        low, high = first * self.end_ns, last * self.end_ns
        responses = [(int(at - low), latency) for at, latency in self.responses if low <= at < high]
        return Outcome(int(high - low), responses, self.batches)

    @property
    def throughput(self) -> float:
        """Responses per second, without those after the end."""
        return (
            sum(at <= self.end_ns for at, _ in self.responses) * _SECOND / self.end_ns
            if self.responses
            else 0.0
        )

    def quantile_ms(self, quantile: float) -> float:
        """Return a quantile of the latencies in ms."""
        latency = sorted(latency for _, latency in self.responses)
        return latency[min(int(quantile * len(latency)), len(latency) - 1)] / 1e6


def poisson(rate: float, begin_s: float, end_s: float, random: Random) -> list[int]:
    """Return the times in ns of Poisson arrivals, `rate` per second."""
    times, now = list[int](), begin_s
    while (now := now + random.expovariate(rate)) < end_s:
        times.append(int(now * _SECOND))
    return times


class Simulation:
    """Simulation of one model with several instances under one load."""

    def __init__(
        self,
        config: str,
        policy: Callable[[ModelConfig], BatchPolicy],
        costs: Costs,
        instances: int = 1,
        new_queue: Callable[[], WaitingQueue] | None = None,
    ) -> None:
        parsed = text_format.Parse(config, ModelConfig())
        self._policy = policy(parsed)
        self._scheduler = DynamicScheduler(
            SchedulerContext(
                "m", 1, parsed, None, lambda _: self._policy, lambda: None, new_queue=new_queue
            )  # type: ignore[arg-type]
        )
        self._scheduler.instances_changed(range(instances))
        self._costs = costs
        self._idle = list(range(instances))
        self._sink = CallbackSink(lambda *_: None)
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self._wakes: set[int] = set()

    def run(self, load: Load, name: Callable[[int], str] = lambda _: "") -> Outcome:
        """Run until all requests have responses; `name(ns)` is the id of a request at that time."""
        self._name = name
        self._load, self._random, self._outcome = load, Random(load.seed), Outcome(load.end_ns)
        for client in range(load.clients):
            self._at(self._random.randrange(1, 1_000_000), self._arrive, client)
        for time_ns in load.times:
            self._at(time_ns, self._arrive, None)
        while self._events:
            now, _, act, arguments = heapq.heappop(self._events)
            act(now, *arguments)
            while self._events and self._events[0][0] == now:
                _, _, act, arguments = heapq.heappop(self._events)
                act(now, *arguments)
            self._dispatch(now)
        return self._outcome

    def run_tenants(self, times: Mapping[str, Sequence[int]], load: Load) -> dict[str, Outcome]:
        """Run requests of several tenants at their times and return the outcome per tenant."""
        tenants = {at: tenant for tenant, each in times.items() for at in each}
        outcome = self.run(replace(load, times=sorted(tenants)), lambda now: tenants[now])
        by_tenant = {tenant: Outcome(load.end_ns) for tenant in times}
        for at, latency in outcome.responses:
            by_tenant[tenants[at - latency]].responses.append((at, latency))
        return by_tenant

    def _at(self, when: int, act: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (when, next(self._order), act, arguments))

    def _arrive(self, now: int, client: int | None) -> None:
        self._scheduler.enqueue(
            InferRequest(
                "m", {}, self._sink, id=self._name(now), queued_ns=now, received_ns=now, tag=client
            )
        )

    def _dispatch(self, now: int) -> None:
        while self._idle:
            instance = self._idle[0]
            ready = self._scheduler.ready(instance, now)
            if ready is not True:
                if ready is not False and ready not in self._wakes:
                    self._wakes.add(ready)
                    self._at(ready, self._wake)
                return
            batch = self._scheduler.take(instance, now)
            if batch is None:
                return
            self._idle.pop(0)
            rows = batch.size
            self._outcome.batches.append(rows)
            duration = self._costs.draw(rows, now)
            self._at(now + duration, self._done, instance, batch, duration)

    def _wake(self, now: int) -> None:
        self._wakes.discard(now)

    def _done(self, now: int, instance: int, batch: Batch, duration: int) -> None:
        self._policy.executed(batch.size, duration)
        self._idle.append(instance)
        for request in batch.requests:
            self._outcome.responses.append((now, now - request.queued_ns))
            if request.tag is not None and now < self._load.end_ns:
                pause = int(self._load.turnaround_ns * self._random.uniform(0.5, 1.5))
                self._at(now + pause, self._arrive, request.tag)
