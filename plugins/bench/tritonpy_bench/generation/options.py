"""The options of a benchmark of a language model, and their flags. Imports nothing heavy."""

from __future__ import annotations

import argparse
import json
from argparse import ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from tritonpy_bench.sweep import LoadRange
from tritonpy_load_generator.options import BadUsage

EndpointType = Literal["chat", "completions", "embeddings", "generate", "generate_stream"]
ENDPOINTS: Mapping[str, str] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "embeddings": "/v1/embeddings",
    "generate": "/v2/models/{model}/generate",
    "generate_stream": "/v2/models/{model}/generate_stream",
}
# Flags that are not named as their options.
_FLAGS: Mapping[str, str] = {
    "input_tokens": "isl",
    "input_tokens_stddev": "isl-stddev",
    "output_tokens": "osl",
    "output_tokens_stddev": "osl-stddev",
}
GOODPUT_NAMES: Mapping[str, str] = {
    "ttft": "ttft",
    "time_to_first_token": "ttft",
    "tpot": "tpot",
    "inter_token_latency": "tpot",
    "itl": "icl",
    "inter_chunk_latency": "icl",
    "e2el": "latency",
    "request_latency": "latency",
}
"""Names of limits, as AIPerf and vLLM have them, with the figures that they limit."""


class GenerationOptions(msgspec.Struct, kw_only=True, frozen=True):
    """The options of one benchmark; `add_generation_flags` explains each of them."""

    model: str
    endpoint_type: EndpointType
    url: str = ""
    endpoint: str = ""
    streaming: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    api_key: str = ""
    concurrency_range: LoadRange | None = None
    request_rate_range: LoadRange | None = None
    request_distribution: Literal["constant", "poisson", "gamma"] = "constant"
    burstiness: float = 1.0
    fixed_schedule: bool = False
    request_count: int = 0
    warmup_request_count: int = 0
    input_tokens: int = 128
    input_tokens_stddev: float = 0.0
    output_tokens: int = 64
    output_tokens_stddev: float = 0.0
    prefix_share: float = 0.0
    input_file: Path | None = None
    tokenizer: str = ""
    num_sessions: int = 0
    turns: int = 1
    think_time: float = 0.0
    request_cancellation_rate: float = 0.0
    request_cancellation_delay: float = 0.0
    extra_inputs: tuple[tuple[str, Any], ...] = ()
    goodput: tuple[tuple[str, float], ...] = ()
    metrics_url: str = ""
    names: Literal["aiperf", "vllm"] = "aiperf"
    seed: int = 1

    @property
    def streams(self) -> bool:
        """Whether responses are streams."""
        return self.streaming or self.endpoint_type == "generate_stream"

    @property
    def path(self) -> str:
        """The path of the endpoint."""
        return self.endpoint or ENDPOINTS[self.endpoint_type].format(model=self.model)

    @property
    def address(self) -> str:
        """The address of the server, with the port of its protocol."""
        port = 8000 if self.endpoint_type.startswith("generate") else 9000
        url = self.url or "localhost"
        has_port = ":" in url.rpartition("//")[2].rpartition("]")[2]
        return url if has_port or "//" in url else f"{url}:{port}"

    @property
    def levels(self) -> LoadRange:
        """The range of concurrencies or rates."""
        return self.request_rate_range or self.concurrency_range or LoadRange(1, 1)


def make_generation_options(named: Mapping[str, Any], model: str | None) -> GenerationOptions:
    """Return options from flags by name. Raises BadUsage."""
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in named.items()
    }
    name = model or given.pop("model", None)
    given.pop("model", None)
    if not name:
        raise BadUsage("no model was given: tritonpy bench MODEL --endpoint-type chat")
    fields = {field.name for field in msgspec.structs.fields(GenerationOptions)}
    other = sorted(each for each in given if each not in fields)
    if other:
        flags = ", ".join(map(flag_name, other))
        raise BadUsage(f"{flags} cannot be used with --endpoint-type")
    options = GenerationOptions(model=name, **given)
    _check(options)
    return options


def flag_name(option: str) -> str:
    """Return the flag of an option."""
    return "--" + _FLAGS.get(option, option.replace("_", "-"))


def _check(options: GenerationOptions) -> None:
    if options.concurrency_range is not None and options.request_rate_range is not None:
        raise BadUsage("use either --concurrency-range or --request-rate-range")
    if not options.levels.end:
        raise BadUsage("the range of the load needs an end: START:END[:STEP]")
    if options.num_sessions and options.endpoint_type != "chat":
        raise BadUsage("--num-sessions needs --endpoint-type chat")
    if options.num_sessions and options.request_rate_range is not None:
        raise BadUsage("--num-sessions needs --concurrency-range: each session waits for responses")
    if options.fixed_schedule and options.input_file is None:
        raise BadUsage("--fixed-schedule needs --input-file with a timestamp for each request")
    if options.streaming and options.endpoint_type in {"embeddings", "generate"}:
        raise BadUsage(f"--endpoint-type {options.endpoint_type} has no streams")
    if not 0 <= options.prefix_share < 1:
        raise BadUsage("--prefix-share must be at least 0 and below 1")
    if not 0 <= options.request_cancellation_rate <= 100:
        raise BadUsage("--request-cancellation-rate is a percentage, from 0 to 100")


def add_generation_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of benchmarks of language models."""
    group = parser.add_argument_group("language models")
    group.add_argument(
        "--endpoint-type",
        choices=tuple(ENDPOINTS),
        help="measure a language model: chat, completions or embeddings of OpenAI's API (default "
        "address: localhost:9000), generate or generate_stream of Triton's",
    )
    group.add_argument("--service-kind", choices=("openai",), help="same as --endpoint-type chat")
    group.add_argument("--endpoint", metavar="PATH", help="path of the endpoint, if it is another")
    group.add_argument("--api-key", metavar="KEY", help="sent as Authorization: Bearer KEY")
    group.add_argument(
        "--tokenizer",
        metavar="FOLDER",
        help="folder with tokenizer.json, or `server` for its /tokenize: makes prompts of exact "
        "lengths (default: common words, about one token each)",
    )
    _length_flags(group)
    _prompt_flags(group)
    _load_flags(group)
    _report_flags(group)


def _load_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--burstiness",
        type=_positive,
        metavar="X",
        help="with the gamma distribution: below 1 more bursty than Poisson, above 1 less",
    )
    group.add_argument(
        "--fixed-schedule",
        action="store_const",
        const=True,
        help="send each request of --input-file at its timestamp",
    )
    group.add_argument(
        "--request-cancellation-rate",
        type=float,
        metavar="PERCENT",
        help="clients that leave before their response is complete (default: 0)",
    )
    group.add_argument(
        "--request-cancellation-delay",
        type=float,
        metavar="SECONDS",
        help="when they leave after the request was sent (default: 0)",
    )


def _report_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--extra-inputs",
        dest="extra_inputs",
        action="append",
        type=_extra_input,
        metavar="NAME:VALUE",
        help="further member of each request; the value is JSON or a text",
    )
    group.add_argument(
        "--goodput",
        type=_goodput,
        metavar='"ttft:200 tpot:50"',
        help="limits in ms; requests that keep all of them are counted",
    )
    group.add_argument(
        "--metrics-url",
        metavar="URL",
        help="metrics of the server, for its queue, prefill, and cache, such as "
        "localhost:8002/metrics",
    )
    group.add_argument(
        "--names",
        choices=("aiperf", "vllm"),
        help="names of the figures in the files: AIPerf's (default) or those of vllm bench",
    )


def _length_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--isl", "--synthetic-input-tokens-mean", dest="input_tokens", type=_count, metavar="N",
        help="tokens of a prompt (default: 128)",
    )  # fmt: skip
    group.add_argument(
        "--isl-stddev", "--synthetic-input-tokens-stddev", dest="input_tokens_stddev", type=float,
        metavar="N", help="their standard deviation (default: 0)",
    )  # fmt: skip
    group.add_argument(
        "--osl", "--output-tokens-mean", dest="output_tokens", type=_count, metavar="N",
        help="tokens of a response (default: 64); with ignore_eos",
    )  # fmt: skip
    group.add_argument(
        "--osl-stddev", "--output-tokens-stddev", dest="output_tokens_stddev", type=float,
        metavar="N", help="their standard deviation (default: 0)",
    )  # fmt: skip


def _prompt_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--prefix-share", type=float, metavar="SHARE",
        help="part of each prompt that all prompts have in common (default: 0)",
    )  # fmt: skip
    group.add_argument(
        "--input-file", type=Path, metavar="JSONL",
        help="prompts: a line each with text or messages, output_length, and timestamp in ms",
    )  # fmt: skip
    group.add_argument(
        "--num-sessions", type=_count, metavar="N",
        help="conversations; each waits for a response before its next turn",
    )  # fmt: skip
    group.add_argument(
        "--turns", type=_count, metavar="N", help="questions of a session (default: 1)"
    )
    group.add_argument(
        "--think-time", type=float, metavar="SECONDS",
        help="pause of a session before its next question (default: 0)",
    )  # fmt: skip


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ArgumentTypeError(f"'{text}' must be a number of at least 1")
    return value


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if value <= 0:
        raise ArgumentTypeError(f"'{text}' must be greater than 0")
    return value


def _extra_input(text: str) -> tuple[str, Any]:
    name, colon, value = text.partition(":")
    if not colon or not name:
        raise ArgumentTypeError(f"'{text}': expected NAME:VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _goodput(text: str) -> tuple[tuple[str, float], ...]:
    limits = []
    for part in text.split():
        name, _, value = part.partition(":")
        if name not in GOODPUT_NAMES:
            raise ArgumentTypeError(
                f"'{name}' is no figure: expected one of {', '.join(GOODPUT_NAMES)}"
            )
        limits.append((GOODPUT_NAMES[name], _positive(value)))
    return tuple(limits)
