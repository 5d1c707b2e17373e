"""The result of an analysis as text."""

from __future__ import annotations

from collections.abc import Iterator

from tritonpy_analyzer.goals import Metric, value_text
from tritonpy_analyzer.study import CandidateResult, Interval, Study

_RUNNERS_UP = 3


def study_text(study: Study) -> str:
    """Return the answer, what it was compared with, and what limits it."""
    return "\n".join(_lines(study)) + "\n"


def _lines(study: Study) -> Iterator[str]:
    goals = ", ".join([*study.constraints, *study.objectives])
    yield f"{', '.join(study.models)} on {study.server}: {goals}"
    yield from _answer(study)
    others = [
        each for each in study.candidates if each.status in {"measured", "out"} and each.windows
    ][:_RUNNERS_UP]
    if others:
        yield "  runners-up"
        for each in others:
            reason = f"  ({each.reason})" if each.reason else ""
            yield f"    {each.text}: {_rate(each)}{reason}"
    front = [each for each in study.candidates if each.on_front]
    if front and len(study.objectives) > 1:
        yield "  no other configuration is better in every objective than"
        yield from (f"    {each.text}: {_rate(each)}, {_memory(each)}" for each in front)
    if study.limited_by:
        yield f"  limited by {study.limited_by}"
    dropped = f", {study.dropped.count} dropped" if study.dropped.count else ""
    yield f"  measured {study.windows} windows in {study.seconds:.0f} s{dropped}"
    for reason, count in study.dropped.reasons.items():
        yield f"    {count} x {reason}"
    yield from (f"  note: {note}" for note in study.notes)


def _answer(study: Study) -> Iterator[str]:
    best, present = study.best, study.present
    match study.status:
        case "too_noisy":
            yield "  this machine is too busy: more than half of the windows do not count"
            return
        case "no_config":
            yield f"  no configuration keeps the constraints: {study.violated}"
            closest = next((each for each in study.candidates if each.windows), present)
            if closest is not None:
                yield f"  the closest is {closest.text}: {_rate(closest)}"
            return
        case "keep":
            yield "  keep the present configuration: no difference to a better one can be shown"
        case _:
            yield f"  use {best.text if best else ''}"
    if best is None:
        return
    yield f"    rate     {_rate(best)}"
    if best.checked_rate is not None:
        yield f"    checked  {value_text(Metric.RATE, best.checked_rate)} keeps the limit"
    if best.latencies:
        parts = [
            f"{name} {interval_text(Metric(name), best.latencies[name])}"
            for name in ("p50", "p99")
            if name in best.latencies
        ]
        yield f"    latency  {', '.join(parts)} ({best.requests:,} requests)"
    yield f"    memory   {_memory(best)}"
    if study.status == "found" and best.gain is not None and present is not None:
        high = f" to {best.gain.high:.2f}" if best.gain.high is not None else ""
        yield (
            f"    gain     {best.gain.value:.2f} times the present configuration "
            f"(95 %: {best.gain.low:.2f}{high})"
        )
        yield f"  present: {present.text}: {_rate(present)}"


def _rate(result: CandidateResult) -> str:
    return interval_text(Metric.RATE, result.rate) if result.rate is not None else "not measured"


def _memory(result: CandidateResult) -> str:
    parts = [f"CPU {value_text(Metric.MEMORY_CPU, result.memory_cpu)}"]
    if result.memory_gpu:
        parts.append(f"GPU {value_text(Metric.MEMORY_GPU, result.memory_gpu)}")
    return ", ".join(parts)


def interval_text(metric: Metric, interval: Interval) -> str:
    """Return an estimate with its interval: 812/s (95 %: 790/s to 830/s)."""
    text = value_text(metric, interval.value)
    if not interval.low and interval.high is None:
        return text
    high = value_text(metric, interval.high) if interval.high is not None else "unknown"
    return f"{text} (95 %: {value_text(metric, interval.low)} to {high})"
