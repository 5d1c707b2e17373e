"""Measures candidates in short windows, and detects windows that other work disturbed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec
import psutil

from tritonpy_analyzer.cost_model import Execution, executions_between
from tritonpy_analyzer.output_check import OutputCheck
from tritonpy_analyzer.servers import (
    InvalidCandidate,
    ServerSlot,
    inference_count,
    memory_in,
    process_tree,
)
from tritonpy_analyzer.space import INSTANCES, Candidate, Space
from tritonpy_checks.machine import read_kernel_file, this_machine
from tritonpy_config.processors import CGROUP
from tritonpy_load_generator.client.pool import ClientPool
from tritonpy_load_generator.figures.histogram import LatencyHistogram, make_histogram, merge
from tritonpy_load_generator.figures.server_share import ServerShare, combine, statistics_between
from tritonpy_load_generator.figures.snapshot import Snapshot, join_consecutive
from tritonpy_load_generator.options import LoadLevel

SNAPSHOT_S = 0.25
_SETTLE_S = 0.3
"""Time at the start of a load that is not counted: connections open, and the queue fills."""
_GRACE_S = 1.0
_REMEMBERED = 10
"""Measurements that decide which server keeps its candidate: the reference is measured most."""
_QUEUED_S = 1.5
"""A request that is older than this many seconds plus four times the limit is an overload."""
MAX_STARVED = 0.25
MAX_OTHER_CPU = 0.75
MAX_STEAL = 0.1
BUSY_CLIENT = 0.95


class LoadWindow(msgspec.Struct, kw_only=True, frozen=True):
    """What one candidate did in one window of load. Times are in seconds unless named otherwise."""

    candidate: str
    level: LoadLevel
    seconds: float
    succeeded: int = 0
    failed: int = 0
    error: str = ""
    latencies: dict[str, LatencyHistogram] = {}
    """By model. Requests that were not answered count as long as they waited."""
    first: LatencyHistogram = LatencyHistogram()
    between: LatencyHistogram = LatencyHistogram()
    overloaded: bool = False
    """Whether the queue grew without bound, which ended the window."""
    queue_us: float = 0.0
    compute_us: float = 0.0
    shares: dict[str, float] = {}
    """Seconds that requests spent in each model: queue and compute."""
    batches: dict[int, int] = {}
    executions: tuple[Execution, ...] = ()
    memory_cpu: int = 0
    memory_gpu: int = 0
    client_busy: float = 0.0
    dropped: str = ""
    """Why the window does not count, or ""."""
    invalid: str = ""
    """The server's error if it refused the candidate."""
    ended_s: float = 0.0
    """The time of the study at the end of the window."""

    @property
    def latency(self) -> LatencyHistogram:
        """The latencies of all models."""
        return merge(self.latencies.values())

    @property
    def rate(self) -> float:
        """Successful requests per second."""
        return self.succeeded / max(self.seconds, 1e-9)


class Measurer(Protocol):
    """Measures windows; `elapsed_s` is the time of the study at the end of the last one."""

    elapsed_s: float

    async def measure(self, candidate: Candidate, level: LoadLevel, seconds: float) -> LoadWindow:
        """Measure a candidate. Raises StartupError if the server or the client fails."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The share of the requests that one model gets."""

    model: str
    weight: float = 1.0


class ServerMeasurer:
    """Measures on servers, each with one pool of client processes per model that gets requests.

    With several servers, candidates that alternate stay loaded, one on each.
    """

    def __init__(
        self,
        slots: Sequence[tuple[ServerSlot, Mapping[str, ClientPool]]],
        space: Space,
        traffic: Sequence[Traffic],
        watched: Sequence[str],
        limit_s: float | None,
        *,
        output_check: OutputCheck | None = None,
        ignore_load: bool = False,
    ) -> None:
        self._slots = list(slots)
        self._space = space
        self._traffic = traffic
        self._watched = watched
        self._limit_s = limit_s
        self._output_check = output_check
        self._ignore_load = ignore_load
        self._recent: deque[Candidate] = deque(maxlen=_REMEMBERED)
        self._started = time.monotonic()
        self.elapsed_s = 0.0

    async def measure(self, candidate: Candidate, level: LoadLevel, seconds: float) -> LoadWindow:
        """Measure a candidate on the server that has it, or on the one that is needed least."""
        slot, pools = self._choose(candidate)
        try:
            await asyncio.to_thread(slot.apply, self._space, candidate)
            if self._output_check is not None:
                await asyncio.to_thread(self._output_check.check, slot, candidate)
        except InvalidCandidate as error:
            window = LoadWindow(
                candidate=candidate.key, level=level, seconds=0.0, invalid=str(error)
            )
        else:
            window = await self._loaded(slot, pools, candidate, level, seconds)
        self.elapsed_s = time.monotonic() - self._started
        return msgspec.structs.replace(window, ended_s=self.elapsed_s)

    def _choose(self, candidate: Candidate) -> tuple[ServerSlot, Mapping[str, ClientPool]]:
        """Return the server that has the candidate, or has one that was measured seldom lately."""
        self._recent.append(candidate)
        for each in self._slots:
            if each[0].candidate == candidate:
                return each
        return min(
            self._slots,
            key=lambda each: self._recent.count(each[0].candidate) if each[0].candidate else -1,
        )

    async def _loaded(
        self,
        slot: ServerSlot,
        pools: Mapping[str, ClientPool],
        candidate: Candidate,
        level: LoadLevel,
        seconds: float,
    ) -> LoadWindow:
        before = await asyncio.to_thread(slot.statistics, self._watched)
        machine = MachineUse(bool(slot.pid))
        await asyncio.gather(
            *(pools[each.model].start(self._part(level, each)) for each in self._traffic)
        )
        snapshots: dict[str, list[Snapshot]] = {each.model: [] for each in self._traffic}
        overloaded = False
        try:
            begin = time.monotonic()
            await asyncio.sleep(_SETTLE_S)
            await _take(pools, snapshots)
            for parts in snapshots.values():
                parts.clear()
            before = await asyncio.to_thread(slot.statistics, self._watched)
            while time.monotonic() - begin - _SETTLE_S < seconds and not overloaded:
                left_s = seconds + _SETTLE_S - (time.monotonic() - begin)
                await asyncio.sleep(min(SNAPSHOT_S, max(left_s, 0.01)))
                await _take(pools, snapshots)
                overloaded = self._is_overloaded(level, snapshots)
            after = await asyncio.to_thread(slot.statistics, self._watched)
            disturbed = machine.disturbance()
        finally:
            grace_s = 0.05 if overloaded else _GRACE_S
            await asyncio.gather(*(pools[each.model].stop(grace_s) for each in self._traffic))
        joined = {name: join_consecutive(parts) for name, parts in snapshots.items()}
        return self._window(candidate, level, joined, before, after, overloaded, disturbed)

    def _part(self, level: LoadLevel, traffic: Traffic) -> LoadLevel:
        share = traffic.weight / sum(each.weight for each in self._traffic)
        value = level.value * share
        return msgspec.structs.replace(
            level, value=value if level.open_loop else max(round(value), 1)
        )

    def _is_overloaded(self, level: LoadLevel, snapshots: Mapping[str, Sequence[Snapshot]]) -> bool:
        if self._limit_s is None or not level.open_loop:
            return False
        oldest_s = max(parts[-1].oldest_ns for parts in snapshots.values()) / 1e9
        return oldest_s > _QUEUED_S + 4 * self._limit_s

    def _window(
        self,
        candidate: Candidate,
        level: LoadLevel,
        joined: Mapping[str, Snapshot],
        before: Mapping[str, Sequence[Mapping[str, Any]]],
        after: Mapping[str, Sequence[Mapping[str, Any]]],
        overloaded: bool,
        disturbed: str,
    ) -> LoadWindow:
        shares = {
            name: statistics_between(name, before[name], after[name]) for name in self._watched
        }
        memory = memory_in(after)
        errors = [text for each in joined.values() for text in each.errors]
        starved = max(each.starved for each in joined.values())
        if not disturbed and starved >= MAX_STARVED:
            disturbed = f"the client waited for a processor {starved:.0%} of the time"
        main = self._traffic[0].model
        queue, compute = _stage_times(shares[main])
        instances = int(candidate.of(main).get(INSTANCES, 1))
        return LoadWindow(
            candidate=candidate.key,
            level=level,
            seconds=max(each.seconds for each in joined.values()),
            succeeded=sum(each.succeeded for each in joined.values()),
            failed=sum(each.failed for each in joined.values()),
            error=errors[0] if errors else "",
            latencies={name: _with_unanswered(each) for name, each in joined.items()},
            first=merge(each.first for each in joined.values()),
            between=merge(each.between for each in joined.values()),
            overloaded=overloaded,
            queue_us=queue,
            compute_us=compute,
            shares={name: _seconds_in(shares[name]) for name in self._space.models},
            batches=combine([shares[main]]).batches,
            executions=tuple(executions_between(before[main], after[main], instances)),
            memory_cpu=memory.cpu,
            memory_gpu=memory.gpu,
            client_busy=max(each.busiest for each in joined.values()),
            dropped="" if self._ignore_load else disturbed,
        )

    async def foreign_requests(self, seconds: float) -> int:
        """Return how many inferences others send to the watched models in `seconds`."""
        slot = self._slots[0][0]
        before = await asyncio.to_thread(slot.statistics, self._watched)
        await asyncio.sleep(seconds)
        after = await asyncio.to_thread(slot.statistics, self._watched)
        return inference_count(after) - inference_count(before)


async def _take(pools: Mapping[str, ClientPool], snapshots: Mapping[str, list[Snapshot]]) -> None:
    for name, parts in snapshots.items():
        parts.append(await pools[name].take_snapshot())


def _with_unanswered(snapshot: Snapshot) -> LatencyHistogram:
    """Return the latencies with those in flight that have waited longer than any answered one."""
    waiting = snapshot.in_flight + snapshot.unsent
    if not waiting or snapshot.oldest_ns <= snapshot.latency.most:
        return snapshot.latency
    ages = [snapshot.oldest_ns * (number + 1) // waiting for number in range(waiting)]
    longer = [age for age in ages if age > snapshot.latency.most]
    return merge([snapshot.latency, make_histogram(longer)])


def _stage_times(share: ServerShare) -> tuple[float, float]:
    names = ("compute_input", "compute_infer", "compute_output")
    return share.stages["queue"].mean_us, sum(share.stages[name].mean_us for name in names)


def _seconds_in(share: ServerShare) -> float:
    names = ("queue", "compute_input", "compute_infer", "compute_output")
    return sum(share.stages[name].total_ns for name in names) / 1e9


class MachineUse:
    """The use of this machine's processors since it was made, by us and by others."""

    def __init__(self, own_server: bool) -> None:
        self._own_server = own_server
        self._cores = this_machine().cores or 1
        self._started = time.monotonic()
        self._machine = psutil.cpu_times()
        self._ours = _own_seconds()
        self._throttled = _throttled_periods()

    def disturbance(self) -> str:
        """Return why a measurement since then does not count, or "" if it does."""
        seconds = max(time.monotonic() - self._started, 1e-3)
        now = psutil.cpu_times()
        steal = (getattr(now, "steal", 0.0) - getattr(self._machine, "steal", 0.0)) / seconds
        if steal / self._cores > MAX_STEAL:
            return f"the hypervisor took {steal / self._cores:.0%} of the processors"
        if self._own_server and _throttled_periods() > self._throttled:
            return "the processor limit of the container throttled the server"
        ours = sum(used - self._ours.get(pid, 0.0) for pid, used in _own_seconds().items())
        busy = _busy(now) - _busy(self._machine)
        others = (busy - ours) / seconds / self._cores
        if self._own_server and others > MAX_OTHER_CPU:
            return f"other processes used {others:.0%} of the processors"
        return ""


def _own_seconds() -> dict[int, float]:
    """Return the processor time of this process and its descendants, by process id."""
    found = {}
    for process in process_tree(os.getpid()):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            found[process.pid] = times.user + times.system
    return found


def _busy(times: Any) -> float:
    return float(times.user + times.system + times.nice + times.irq + times.softirq)


def _throttled_periods() -> int:
    for line in read_kernel_file(Path(CGROUP) / "cpu.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == "nr_throttled" and value.isdigit():
            return int(value)
    return 0
