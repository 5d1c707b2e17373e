"""The figures of one level: times and tokens of each request, and their statistics.

| figure    | meaning                                                                        |
| --------- | ------------------------------------------------------------------------------ |
| `ttft`    | from sending a request to its first text, ms                                   |
| `ttst`    | from the first text to the second, ms                                          |
| `latency` | from sending to the last text, ms                                              |
| `tpot`    | (latency - ttft) / (output tokens - 1), one value per request, ms              |
| `icl`     | every gap between two parts of a stream, which may have several tokens, ms     |

AIPerf calls `tpot` inter token latency and `icl` inter chunk latency; vLLM calls them TPOT and ITL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from tritonpy_bench.generation.connection import TimedExchange
from tritonpy_bench.generation.options import GenerationOptions
from tritonpy_bench.generation.prompts import Tokenizer
from tritonpy_bench.generation.replies import GenerationReply, read_reply

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
_MS = 1e6  # ns
_TIMELINE_POINTS = 60


class Figure(msgspec.Struct):
    """Statistics of one figure over requests, or over gaps."""

    count: int
    avg: float
    std: float
    min: float
    max: float
    percentiles: dict[str, float]

    def at(self, percent: int) -> float:
        """Return a percentile of `PERCENTILES`."""
        return self.percentiles[f"p{percent}"]


class LevelFigures(msgspec.Struct, kw_only=True):
    """The result of one level. Rates are per second; `figures` are described above.

    `counted_by` says who counted the output tokens: usage, tokenizer, or chunks. `timeline` has
    output tokens per second at moments in seconds.
    """

    mode: str
    level: float
    seconds: float
    requests: int
    failed: int
    cancelled: int
    short: int
    empty: int
    errors: dict[str, int]
    figures: dict[str, Figure]
    requests_per_s: float
    output_tokens_per_s: float
    total_tokens_per_s: float
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    counted_by: str
    goodput: float | None = None
    late_ms: float = 0.0
    timeline: list[tuple[float, float]] = []
    server: dict[str, float] = {}
    interrupted: bool = False

    @property
    def name(self) -> str:
        """The level as text."""
        if self.mode == "concurrency":
            return f"concurrency {self.level:g}"
        return "schedule" if self.mode == "schedule" else f"{self.level:g} requests/s"


class _RequestFigures(msgspec.Struct):
    ttft: float | None
    ttst: float | None
    latency: float
    tpot: float | None
    gaps: list[float]
    input_tokens: int
    output_tokens: int
    cached_tokens: int


def level_figures(
    mode: str,
    level: float,
    exchanges: Sequence[TimedExchange],
    options: GenerationOptions,
    tokens_of: Tokenizer | None,
) -> LevelFigures:
    """Return the figures of the exchanges of one level."""
    streams, is_text = options.streams, options.endpoint_type != "embeddings"
    replies = [read_reply(each, streams=streams) for each in exchanges]
    counts, errors = _counting(replies, tokens_of, is_text=is_text), Counter[str]()
    complete: list[tuple[TimedExchange, GenerationReply, _RequestFigures]] = []
    short = empty = cancelled = 0
    for exchange, reply in zip(exchanges, replies, strict=True):
        if exchange.is_cancelled:
            cancelled += 1
        elif reply.error:
            errors[reply.error] += 1
        elif is_text and not reply.texts:
            empty += 1
        else:
            figures = _request_figures(exchange, reply, counts, tokens_of, streams=streams)
            short += is_text and figures.output_tokens < exchange.output_tokens
            complete.append((exchange, reply, figures))
    every = [each for *_, each in complete]
    # As AIPerf: from the first request to the last response.
    began = min((each.sent_ns for each in exchanges), default=0)
    ended = max((each.ended_ns for each in exchanges), default=0)
    seconds = max((ended - began) / 1e9, 1e-9)
    inputs, outputs = sum(e.input_tokens for e in every), sum(e.output_tokens for e in every)
    due = [each.sent_ns - each.due_ns for each in exchanges if each.due_ns]
    return LevelFigures(
        mode=mode,
        level=level,
        seconds=seconds,
        requests=len(every),
        failed=errors.total(),
        cancelled=cancelled,
        short=short,
        empty=empty,
        errors=dict(errors),
        figures=_figures(every),
        requests_per_s=len(every) / seconds,
        output_tokens_per_s=outputs / seconds,
        total_tokens_per_s=(inputs + outputs) / seconds,
        input_tokens=inputs,
        output_tokens=outputs,
        cached_tokens=sum(each.cached_tokens for each in every),
        counted_by=counts,
        goodput=_goodput(every, options.goodput, seconds) if options.goodput else None,
        late_ms=float(np.percentile(due, 99)) / _MS if due else 0.0,
        timeline=_timeline(complete, began, seconds),
    )


def _counting(
    replies: Sequence[GenerationReply], tokens_of: Tokenizer | None, *, is_text: bool
) -> str:
    if any(each.output_tokens is not None for each in replies) or not is_text:
        return "usage"
    return "tokenizer" if tokens_of is not None else "chunks"


def _request_figures(
    exchange: TimedExchange,
    reply: GenerationReply,
    counts: str,
    tokens_of: Tokenizer | None,
    *,
    streams: bool,
) -> _RequestFigures:
    times = [at_ns for at_ns, _ in reply.texts]
    output = reply.output_tokens
    if output is None and counts == "tokenizer" and tokens_of is not None:
        output = tokens_of(reply.text)
    if output is None:
        output = len(times)
    last = times[-1] if times else exchange.ended_ns
    latency = (last - exchange.sent_ns) / _MS
    ttft = (times[0] - exchange.sent_ns) / _MS if streams and times else None
    return _RequestFigures(
        ttft,
        (times[1] - times[0]) / _MS if streams and len(times) > 1 else None,
        latency,
        (latency - ttft) / (output - 1) if ttft is not None and output > 1 else None,
        [(b - a) / _MS for a, b in pairwise(times)] if streams else [],
        reply.input_tokens or 0,
        output,
        reply.cached_tokens or 0,
    )


def _figures(every: Sequence[_RequestFigures]) -> dict[str, Figure]:
    values: dict[str, list[float]] = {
        "ttft": [each.ttft for each in every if each.ttft is not None],
        "ttst": [each.ttst for each in every if each.ttst is not None],
        "latency": [each.latency for each in every],
        "tpot": [each.tpot for each in every if each.tpot is not None],
        "icl": [gap for each in every for gap in each.gaps],
        "rate_per_user": [1000 / each.tpot for each in every if each.tpot],
        "prefill_rate": [
            1000 * each.input_tokens / each.ttft
            for each in every
            if each.ttft and each.input_tokens
        ],
        "isl": [each.input_tokens for each in every if each.input_tokens],
        "osl": [each.output_tokens for each in every if each.output_tokens],
    }
    return {name: _statistics(found) for name, found in values.items() if found}


def _statistics(values: Sequence[float]) -> Figure:
    array = np.asarray(values, np.float64)
    found = np.percentile(array, PERCENTILES)
    return Figure(
        len(array),
        float(array.mean()),
        float(array.std()),
        float(array.min()),
        float(array.max()),
        {f"p{percent}": float(value) for percent, value in zip(PERCENTILES, found, strict=True)},
    )


def _goodput(
    every: Sequence[_RequestFigures], limits: Sequence[tuple[str, float]], seconds: float
) -> float:
    def value(each: _RequestFigures, name: str) -> float | None:
        if name == "icl":
            return sum(each.gaps) / len(each.gaps) if each.gaps else None
        found: float | None = getattr(each, name)
        return found

    kept = 0
    for each in every:
        values = [(value(each, name), limit) for name, limit in limits]
        kept += all(found is None or found <= limit for found, limit in values)
    return kept / seconds


def _timeline(
    complete: Sequence[tuple[TimedExchange, GenerationReply, _RequestFigures]],
    began_ns: int,
    seconds: float,
) -> list[tuple[float, float]]:
    """Return output tokens per second over time; the parts of a response share its tokens."""
    width = seconds / _TIMELINE_POINTS
    tokens = np.zeros(_TIMELINE_POINTS)
    for _, reply, figures in complete:
        if reply.texts:
            each = figures.output_tokens / len(reply.texts)
            for at_ns, _ in reply.texts:
                place = int((at_ns - began_ns) / 1e9 / width)
                tokens[min(max(place, 0), _TIMELINE_POINTS - 1)] += each
    return [((n + 0.5) * width, float(value / width)) for n, value in enumerate(tokens)]


# Names and units of the figures in AIPerf's files.
_AIPERF: Mapping[str, tuple[str, str]] = {
    "ttft": ("time_to_first_token", "ms"),
    "ttst": ("time_to_second_token", "ms"),
    "latency": ("request_latency", "ms"),
    "tpot": ("inter_token_latency", "ms"),
    "icl": ("inter_chunk_latency", "ms"),
    "rate_per_user": ("output_token_throughput_per_user", "tokens/sec/user"),
    "prefill_rate": ("prefill_throughput_per_user", "tokens/sec/user"),
    "isl": ("input_sequence_length", "tokens"),
    "osl": ("output_sequence_length", "tokens"),
}
# Names of the figures in the files of `vllm bench serve`.
_VLLM: Mapping[str, str] = {"ttft": "ttft", "tpot": "tpot", "icl": "itl", "latency": "e2el"}


def named_figures(level: LevelFigures, names: str) -> dict[str, Any]:
    """Return the figures of a level by the names of AIPerf or of vLLM."""
    return _vllm_figures(level) if names == "vllm" else _aiperf_figures(level)


def _aiperf_figures(level: LevelFigures) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, (name, unit) in _AIPERF.items():
        figure = level.figures.get(key)
        if figure is not None:
            found[name] = {
                "unit": unit, "avg": figure.avg, **figure.percentiles, "min": figure.min,
                "max": figure.max, "std": figure.std,
            }  # fmt: skip
    rates = {
        "request_throughput": ("requests/sec", level.requests_per_s),
        "output_token_throughput": ("tokens/sec", level.output_tokens_per_s),
        "total_token_throughput": ("tokens/sec", level.total_tokens_per_s),
        "request_count": ("requests", level.requests),
        "error_request_count": ("requests", level.failed),
        "benchmark_duration": ("sec", level.seconds),
    }
    if level.goodput is not None:
        rates["goodput"] = ("requests/sec", level.goodput)
    return found | {name: {"unit": unit, "avg": value} for name, (unit, value) in rates.items()}


def _vllm_figures(level: LevelFigures) -> dict[str, Any]:
    found: dict[str, Any] = {
        "duration": level.seconds,
        "completed": level.requests,
        "failed": level.failed,
        "total_input_tokens": level.input_tokens,
        "total_output_tokens": level.output_tokens,
        "request_throughput": level.requests_per_s,
        "request_goodput": level.goodput,
        "output_throughput": level.output_tokens_per_s,
        "total_token_throughput": level.total_tokens_per_s,
    }
    for key, name in _VLLM.items():
        figure = level.figures.get(key)
        if figure is not None:
            found[f"mean_{name}_ms"] = figure.avg
            found[f"median_{name}_ms"] = figure.at(50)
            found[f"std_{name}_ms"] = figure.std
            for percent in PERCENTILES:
                found[f"p{percent}_{name}_ms"] = figure.at(percent)
    return found
