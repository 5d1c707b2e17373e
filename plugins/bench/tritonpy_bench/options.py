"""Options of a benchmark, as plain values that can be sent to client processes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tritonpy import StartupError
from tritonpy_bench.sweep import LoadRange


class BadUsage(StartupError):
    """An invalid command line, or an invalid file that it names. The exit status is 2."""


class BenchOptions(msgspec.Struct, kw_only=True, frozen=True):
    """The options of one benchmark, named as their flags; `flags.py` explains each of them."""

    model: str
    model_version: str = ""
    url: str = ""
    protocol: Literal["http", "grpc"] = "http"
    batch: int = 1
    concurrency_range: LoadRange | None = None
    request_rate_range: LoadRange | None = None
    request_intervals: str | None = None
    request_distribution: Literal["constant", "poisson"] = "constant"
    binary_search: bool = False
    measurement_interval: float = 5000.0
    measurement_mode: Literal["time_windows", "count_windows"] = "time_windows"
    measurement_request_count: int = 50
    stability_percentage: float = 10.0
    max_trials: int = 10
    percentile: int | None = None
    latency_threshold: float = 0.0
    request_count: int = 0
    warmup_request_count: int = 0
    client_processes: int = 1
    max_in_flight: int = 512
    connections: int = 0
    seed: int = 1
    input_data: tuple[str, ...] = ("random",)
    shape: tuple[tuple[str, tuple[int, ...]], ...] = ()
    string_length: int = 128
    string_data: str | None = None
    request_parameter: tuple[tuple[str, str | int | float | bool], ...] = ()
    input_tensor_format: Literal["auto", "binary", "json"] = "auto"
    output_tensor_format: Literal["auto", "binary", "json"] = "auto"
    shared_memory: Literal["none", "system"] = "none"
    output_shared_memory_size: int = 102_400
    num_of_sequences: int = 4
    sequence_length: int | None = None
    sequence_length_variation: float = 20.0
    sequence_id_range: tuple[int, int | None] = (1, None)
    streaming: bool = False
    grpc_compression_algorithm: Literal["none", "gzip", "deflate"] = "none"
    headers: tuple[tuple[str, str], ...] = ()
    bls_composing_models: tuple[str, ...] = ()
    ssl_grpc_use_ssl: bool = False
    ssl_grpc_root_certifications_file: str | None = None
    ssl_grpc_private_key_file: str | None = None
    ssl_grpc_certificate_chain_file: str | None = None
    ssl_https_verify_peer: int = 1
    ssl_https_verify_host: int = 2
    ssl_https_ca_certificates_file: str | None = None
    ssl_https_client_certificate_file: str | None = None
    ssl_https_private_key_file: str | None = None

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


def make_options(named: dict[str, Any], model: str | None) -> BenchOptions:
    """Make options from values by name; `model` is the argument MODEL. Raises BadUsage."""
    names = {name for name in (model, named.get("model")) if name}
    if len(names) != 1:
        raise BadUsage(
            f"two models were given: {' and '.join(sorted(names))}"
            if names
            else "no model was given: tritonpy bench MODEL"
        )
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
