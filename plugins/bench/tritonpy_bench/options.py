"""Options of a benchmark."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tritonpy_bench.generation.options import flag_name
from tritonpy_bench.sweep import LoadRange
from tritonpy_load_generator.options import BadUsage, LoadLevel, LoadOptions


class BenchOptions(LoadOptions, kw_only=True, frozen=True):
    """The options of one benchmark, named as their flags; `flags.py` explains each of them."""

    concurrency_range: LoadRange | None = None
    request_rate_range: LoadRange | None = None
    request_distribution: Literal["constant", "poisson"] = "constant"
    binary_search: bool = False
    measurement_interval: float = 5000.0
    measurement_mode: Literal["time_windows", "count_windows"] = "time_windows"
    measurement_request_count: int = 50
    stability_percentage: float = 10.0
    max_trials: int = 10
    percentile: int | None = None
    latency_threshold: float = 0.0
    bls_composing_models: tuple[str, ...] = ()

    @property
    def open_loop(self) -> bool:
        """Whether requests start when they are due instead of when a response arrives."""
        return self.request_rate_range is not None or self.request_intervals is not None

    @property
    def levels(self) -> LoadRange:
        """The range of concurrencies or rates; a file of intervals is one level."""
        if self.request_intervals is not None:
            return LoadRange(1, 1)
        return self.request_rate_range or self.concurrency_range or LoadRange(1, 1)

    def load_level(self, value: float) -> LoadLevel:
        """Return a level of `levels` with its arrivals."""
        if self.request_intervals is not None:
            return LoadLevel(value, "intervals", self.seed)
        if self.request_rate_range is not None:
            return LoadLevel(value, self.request_distribution, self.seed)
        return LoadLevel(value)


def make_options(named: dict[str, Any], model: str | None) -> BenchOptions:
    """Make options from values by name; `model` is the argument MODEL. Raises BadUsage."""
    names = {name for name in (model, named.get("model")) if name}
    if len(names) != 1:
        raise BadUsage(
            f"two models were given: {' and '.join(sorted(names))}"
            if names
            else "no model was given: tritonpy bench MODEL"
        )
    known = {field.name for field in msgspec.structs.fields(BenchOptions)}
    other = sorted(name for name in named if name not in known)
    if other or named.get("request_distribution") == "gamma":
        text = ", ".join(map(flag_name, other)) or "--request-distribution gamma"
        raise BadUsage(f"{text} needs --endpoint-type: it is for language models only")
    return msgspec.convert({**named, "model": names.pop()}, BenchOptions)


def check_options(options: BenchOptions) -> None:
    """Raise BadUsage if options contradict each other or are out of range."""
    for wrong, text in (*_contradictions(options), *_limits(options)):
        if wrong:
            raise BadUsage(text)


def _contradictions(options: BenchOptions) -> list[tuple[bool, str]]:
    ways = [options.concurrency_range, options.request_rate_range, options.request_intervals]
    levels = options.levels
    closed = not options.open_loop
    return [
        (
            sum(way is not None for way in ways) > 1,
            (
                "--concurrency-range, --request-rate-range and --request-intervals exclude each "
                "other: use one of them"
            ),
        ),
        (options.streaming and options.protocol != "grpc", "--streaming needs gRPC: add -i grpc"),
        (
            options.binary_search and not levels.end,
            (
                "--binary-search needs both ends of the range: --concurrency-range "
                "START:END:STEP or --request-rate-range START:END:STEP"
            ),
        ),
        (
            options.binary_search and not options.latency_threshold,
            "--binary-search needs a latency limit: add --latency-threshold MILLISECONDS",
        ),
        (
            not levels.end and not options.latency_threshold,
            "a range without an end needs a latency limit: add --latency-threshold MILLISECONDS",
        ),
        (
            closed
            and any(figure != int(figure) for figure in (levels.start, levels.end, levels.step)),
            "--concurrency-range takes whole numbers",
        ),
        (
            options.shared_memory == "system" and options.input_tensor_format == "json",
            "--input-tensor-format json and --shared-memory system exclude each other",
        ),
    ]


def _limits(options: BenchOptions) -> list[tuple[bool, str]]:
    first, last = options.sequence_id_range
    most = options.levels.end or options.levels.start
    slots = options.num_of_sequences if options.open_loop else int(most)
    return [
        (options.batch < 1, "-b must be at least 1"),
        (options.measurement_interval <= 0, "--measurement-interval must be greater than 0"),
        (options.measurement_request_count < 1, "--measurement-request-count must be at least 1"),
        (options.max_trials < 1, "--max-trials must be at least 1"),
        (
            options.percentile is not None and not 1 <= options.percentile <= 99,
            "--percentile must be between 1 and 99",
        ),
        (options.client_processes < 1, "--client-processes must be at least 1"),
        (options.max_in_flight < 1, "--max-in-flight must be at least 1"),
        (options.connections < 0, "--connections must not be negative"),
        (
            min(options.request_count, options.warmup_request_count) < 0,
            "counts of requests must not be negative",
        ),
        (options.string_length < 0, "--string-length must not be negative"),
        (options.num_of_sequences < 1, "--num-of-sequences must be at least 1"),
        (
            options.sequence_length is not None and options.sequence_length < 1,
            "--sequence-length must be at least 1",
        ),
        (
            first < 1 or (last is not None and last <= first),
            "--sequence-id-range START:END needs 1 <= START < END",
        ),
        (
            last is not None and last - first < max(slots, options.client_processes),
            f"--sequence-id-range holds fewer ids than the {slots} sequences open at a time",
        ),
        (
            last is not None and not options.levels.end,
            "--sequence-id-range START:END needs a load range with an end",
        ),
        (options.output_shared_memory_size < 1, "--output-shared-memory-size must be at least 1"),
    ]
