"""Makes the result of an analysis from what a search has found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tritonpy_analyzer.goals import Goals, Metric
from tritonpy_analyzer.measuring import LoadWindow
from tritonpy_analyzer.racing import Comparison
from tritonpy_analyzer.search import Search
from tritonpy_analyzer.space import INSTANCES, Candidate
from tritonpy_analyzer.study import (
    CandidateResult,
    CurvePoint,
    DroppedWindows,
    Interval,
    Study,
    machine_text,
    percentile_interval,
)
from tritonpy_checks.machine import this_machine
from tritonpy_load_generator.figures.histogram import merge
from tritonpy_load_generator.target.metadata import TargetDescription

if TYPE_CHECKING:
    from tritonpy_analyzer.analysis import AnalysisOptions

_NEAR_RATE = 0.08
_PERCENTILES = (Metric.P50, Metric.P90, Metric.P95, Metric.P99, Metric.P999)


def make_study(
    search: Search,
    options: AnalysisOptions,
    goals: Goals,
    target: TargetDescription,
    notes: Sequence[str],
    interrupted: bool,
) -> Study:
    """Return the result of a search, whatever it has found so far."""
    found, space = search.findings, search.space
    present = space.present
    violated = search.violation()
    leader = found.leader or present
    known = dict.fromkeys([present, *found.merits, *found.out, *found.windows])
    results = {candidate: _result(search, candidate, goals) for candidate in known}
    for candidate in found.front:
        results[candidate].on_front = True
    gain = found.gain
    if found.too_noisy:
        status = "too_noisy"
    elif violated:
        status = "no_config"
    elif leader == present or (present not in found.out and not _is_better(gain)):
        status = "keep"
    else:
        status = "found"
    if gain is not None and leader != present:
        results[leader].gain = Interval.of(gain.ratio, gain.low, gain.high)
    results[present].status = "present"
    if status == "found" or (leader != present and status != "too_noisy"):
        results[leader].status = "recommended" if status == "found" else "closest"
    if found.verified is not None and found.verified[1] and leader in results:
        results[leader].checked_rate, windows = found.verified
        _note_latencies(results[leader], windows)
    ranked = sorted(results, key=lambda each: (-found.merits.get(each, -math.inf), each.key))
    return Study(
        status=status,
        models=list(options.models),
        constraints=[str(each) for each in goals.constraints],
        objectives=[str(each) for each in goals.objectives],
        load=search.load_text(),
        command=options.command,
        server=f"{target.server.name} {target.server.version}".strip(),
        machine=machine_text(),
        seconds=search.elapsed_s,
        minutes=options.minutes,
        seed=options.seed,
        interrupted=interrupted,
        recommended=results[leader] if status == "found" else None,
        present=results[present],
        candidates=[results[each] for each in ranked],
        limited_by=_limited_by(results[leader], found.windows.get(leader, [])),
        violated=violated,
        windows=found.count,
        dropped=DroppedWindows(
            len(found.dropped), dict(Counter(each.dropped for each in found.dropped))
        ),
        importance=_importance(found.merits),
        notes=[*notes, *_pruned_notes(found.pruned), *_thread_notes(leader)],
    )


def _is_better(gain: Comparison | None) -> bool:
    return gain is not None and gain.verdict == "better"


def _pruned_notes(pruned: Mapping[Candidate, str]) -> list[str]:
    return [
        f"{count} configurations were not measured: {reason}"
        for reason, count in Counter(pruned.values()).items()
    ]


def _thread_notes(candidate: Candidate) -> list[str]:
    """Return a note for each model whose instances together use more threads than cores."""
    cores = this_machine().cores or 1
    notes = []
    for model in dict.fromkeys(model for model, _, _ in candidate.settings):
        values = candidate.of(model)
        threads = [
            int(value)
            for name, value in values.items()
            if "thread" in name.lower() and isinstance(value, int)
        ]
        used = int(values.get(INSTANCES, 1)) * max(threads, default=1)
        if threads and used > cores:
            notes.append(f"'{model}' uses up to {used} threads on {cores} cores")
    return notes


def _result(search: Search, candidate: Candidate, goals: Goals) -> CandidateResult:
    found = search.findings
    windows = found.windows.get(candidate, [])
    rate = search.rate(candidate)
    result = CandidateResult(
        settings=list(candidate.settings),
        text=candidate.describe(),
        changes=search.space.changes(candidate),
        status="out" if candidate in found.out else "measured",
        reason=found.out.get(candidate, ""),
        windows=len(windows),
        rate=None if rate is None else Interval.of(*rate),
        predicted_rate=found.predicted.get(candidate),
        merits=list(found.front.get(candidate, (found.merits.get(candidate, 0.0),))),
        memory_cpu=max((each.memory_cpu for each in windows), default=0),
        memory_gpu=max((each.memory_gpu for each in windows), default=0),
    )
    if candidate in found.merits and candidate != search.space.present:
        ratio = math.exp(found.merits[candidate])
        result.gain = Interval(ratio, 0.0, None)
    _note_latencies(result, _near_rate(windows, None if rate is None else rate[0])[-8:])
    limits = goals.latency_limits
    percent = (limits[0].metric.percentile or 99.0) if limits else 99.0
    for window in sorted(found.curves.get(candidate, []), key=lambda each: each.level.value):
        latency = percentile_interval(window.latency, percent)
        result.curve.append(CurvePoint(window.level.value, latency, window.latency.total))
    return result


def _near_rate(windows: Sequence[LoadWindow], rate: float | None) -> list[LoadWindow]:
    """Return the windows of a candidate at about its own rate; those of its search are left out."""
    if rate is None or not any(each.level.open_loop for each in windows):
        return list(windows)
    return [each for each in windows if abs(math.log(each.level.value / rate)) < _NEAR_RATE]


def _note_latencies(result: CandidateResult, windows: Sequence[LoadWindow]) -> None:
    if not windows:
        return
    latency = merge(each.latency for each in windows)
    result.latencies = {
        metric.value: percentile_interval(latency, metric.percentile or 0.0)
        for metric in _PERCENTILES
    }
    result.requests = latency.total
    count = len(windows)
    result.queue_us = sum(each.queue_us for each in windows) / count
    result.compute_us = sum(each.compute_us for each in windows) / count
    batches: Counter[int] = Counter()
    shares: Counter[str] = Counter()
    for window in windows:
        batches.update(window.batches)
        shares.update(window.shares)
    result.batches = dict(sorted(batches.items()))
    total = sum(shares.values()) or 1.0
    result.shares = {name: value / total for name, value in shares.items()}


def _limited_by(result: CandidateResult, windows: Sequence[LoadWindow]) -> str:
    busy = max((each.client_busy for each in windows), default=0.0)
    if busy >= 0.95:
        return "the client: it used a whole core; add --client-processes"
    if not result.queue_us and not result.compute_us:
        return ""
    slowest = max(result.shares, key=lambda each: result.shares[each], default="")
    where = f" in '{slowest}'" if len(result.shares) > 1 else ""
    if result.queue_us > result.compute_us:
        return (
            f"the queue{where}: requests wait {result.queue_us / 1e3:.3g} ms, "
            f"executions take {result.compute_us / 1e3:.3g} ms"
        )
    return (
        f"compute{where}: executions take {result.compute_us / 1e3:.3g} ms, "
        f"requests wait {result.queue_us / 1e3:.3g} ms"
    )


def _importance(merits: Mapping[Candidate, float]) -> dict[str, float]:
    """Return the share of the variance of the merits that each setting explains by itself."""
    known = {each: value for each, value in merits.items() if math.isfinite(value)}
    if len(known) < 3:
        return {}
    mean = sum(known.values()) / len(known)
    total = sum((value - mean) ** 2 for value in known.values())
    found: dict[str, float] = {}
    for model, name, _ in next(iter(known)).settings:
        groups: dict[Any, list[float]] = {}
        for candidate, merit in known.items():
            groups.setdefault(candidate.of(model)[name], []).append(merit)
        between = sum(
            len(group) * (sum(group) / len(group) - mean) ** 2 for group in groups.values()
        )
        found[f"{model}: {name}"] = between / total if total else 0.0
    return dict(sorted(found.items(), key=lambda item: -item[1]))
