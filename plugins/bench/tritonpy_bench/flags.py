"""The flags of `tritonpy bench`, named as in perf_analyzer if it has them.

Imports nothing heavy.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tritonpy_bench.flag_types import (
    header,
    id_range,
    load_range,
    parameter,
    shape,
    truth,
)
from tritonpy_bench.generation.options import add_generation_flags


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add all flags to the parser."""
    parser.add_argument("model_name", nargs="?", metavar="MODEL", help="the model to measure")
    for add in (_server, _load, _measurement, _inputs, _sequences, _encryption, _reports):
        add(parser)
    add_generation_flags(parser)


def _server(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("server and model")
    group.add_argument("-m", dest="model", metavar="MODEL", help="same as the argument MODEL")
    group.add_argument(
        "-x",
        dest="model_version",
        metavar="VERSION",
        help="version of the model (default: the server's choice)",
    )
    group.add_argument(
        "-u",
        dest="url",
        metavar="HOST:PORT",
        help="server address (default: localhost:8000, for gRPC localhost:8001)",
    )
    group.add_argument(
        "-i",
        dest="protocol",
        choices=("http", "grpc"),
        type=str.lower,
        help="protocol (default: http)",
    )
    group.add_argument(
        "-H",
        dest="headers",
        action="append",
        type=header,
        metavar="NAME:VALUE",
        help="header sent with every request (over gRPC: metadata)",
    )
    group.add_argument(
        "--streaming",
        action="store_const",
        const=True,
        help="gRPC: send requests on streams (required for decoupled models); language models: "
        "ask for streams",
    )
    group.add_argument(
        "--grpc-compression-algorithm",
        choices=("none", "gzip", "deflate"),
        help="compression of gRPC requests (default: none)",
    )
    group.add_argument(
        "--bls-composing-models",
        type=_names,
        metavar="NAME[:VERSION],…",
        help="models called by the model; their statistics are shown in addition",
    )


def _load(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("load")
    _load_levels(group)
    _load_generator(group)


def _load_levels(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--concurrency-range",
        type=load_range,
        metavar="START[:END[:STEP]]",
        help=(
            "closed loop: number of requests always in flight (default: 1); END 0: "
            "until --latency-threshold is exceeded"
        ),
    )
    group.add_argument(
        "--request-rate-range",
        type=load_range,
        metavar="START[:END[:STEP]]",
        help=(
            "open loop: requests per second, independent of the responses; "
            "latency counts from when a request was due"
        ),
    )
    group.add_argument(
        "--request-distribution",
        choices=("constant", "poisson", "gamma"),
        help="intervals between the requests of an open loop (default: constant); gamma: of "
        "language models only, see --burstiness",
    )
    group.add_argument(
        "--request-intervals",
        metavar="FILE",
        help="open loop with the intervals in this file: microseconds, one per line, repeated",
    )
    group.add_argument(
        "--binary-search",
        action="store_const",
        const=True,
        help="search for the highest level within --latency-threshold, to a precision of one STEP",
    )


def _load_generator(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--max-in-flight",
        type=int,
        metavar="N",
        help=(
            "open loop: maximum requests in flight; further due requests wait, "
            "and their latency counts (default: 512)"
        ),
    )
    group.add_argument(
        "--connections",
        type=int,
        metavar="N",
        help=(
            "gRPC: shared connections and streams (default: one per request in flight, "
            "at most 8); HTTP uses one per request in flight"
        ),
    )
    group.add_argument(
        "--client-processes",
        type=int,
        metavar="N",
        help="processes that generate the load (default: 1)",
    )
    group.add_argument("--seed", type=int, metavar="N", help="random seed (default: 1)")
    group.add_argument(
        "-a",
        "--async",
        "--sync",
        "--serial-sequences",
        dest="ignored",
        action="store_true",
        help=(
            "accepted without effect: the client is always asynchronous, "
            "and a sequence has one request in flight"
        ),
    )


def _measurement(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("measurement")
    group.add_argument(
        "-p",
        "--measurement-interval",
        type=float,
        metavar="MS",
        help="length of a measurement window in milliseconds (default: 5000)",
    )
    group.add_argument(
        "--measurement-mode",
        choices=("time_windows", "count_windows"),
        help=(
            "end windows by time, or by time and number of finished requests (default: "
            "time_windows)"
        ),
    )
    group.add_argument(
        "--measurement-request-count",
        type=int,
        metavar="N",
        help="requests per window in mode count_windows (default: 50)",
    )
    group.add_argument(
        "-s",
        "--stability-percentage",
        type=float,
        metavar="PERCENT",
        help="allowed difference of the last three windows in rate and latency (default: 10)",
    )
    group.add_argument(
        "-r", "--max-trials", type=int, metavar="N", help="maximum windows per level (default: 10)"
    )
    group.add_argument(
        "--percentile",
        type=int,
        metavar="P",
        help="latency percentile for stability and threshold (default: the mean)",
    )
    group.add_argument(
        "-l",
        "--latency-threshold",
        type=float,
        metavar="MS",
        help="stop when this latency is exceeded; exit status 1 if no level kept it",
    )
    group.add_argument(
        "--request-count",
        type=int,
        metavar="N",
        help="measure exactly this number of requests per level, in one window",
    )
    group.add_argument(
        "--warmup-request-count",
        type=int,
        metavar="N",
        help="requests sent and not counted before each level",
    )


def _inputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("inputs")
    group.add_argument(
        "-b", dest="batch", type=int, metavar="N", help="batch size of every request (default: 1)"
    )
    group.add_argument(
        "--shape",
        action="append",
        type=shape,
        metavar="INPUT:DIM,…",
        help="shape of an input with variable dimensions, without the batch dimension",
    )
    group.add_argument(
        "--input-data",
        action="append",
        metavar="random|zero|FILE|FOLDER",
        help=(
            "random (default), zero, a JSON file in perf_analyzer's format (repeatable), "
            "or a folder with one file per input"
        ),
    )
    group.add_argument(
        "--string-length", type=int, metavar="N", help="length of random strings (default: 128)"
    )
    group.add_argument("--string-data", metavar="TEXT", help="value of every string element")
    group.add_argument(
        "--request-parameter",
        action="append",
        type=parameter,
        metavar="NAME:VALUE:TYPE",
        help="parameter of every request; TYPE is string, int, float or bool",
    )
    group.add_argument(
        "--input-tensor-format",
        choices=("auto", "binary", "json"),
        help="HTTP: encoding of inputs (default: binary if the server announces it)",
    )
    group.add_argument(
        "--output-tensor-format",
        choices=("auto", "binary", "json"),
        help="HTTP: encoding of outputs (default: as --input-tensor-format)",
    )
    group.add_argument(
        "--shared-memory",
        choices=("none", "system"),
        help="pass tensors in system shared memory (default: none)",
    )
    group.add_argument(
        "--output-shared-memory-size",
        type=int,
        metavar="BYTES",
        help=(
            "bytes per batch element for outputs with strings or variable dimensions (default: "
            "102400)"
        ),
    )


def _sequences(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sequences")
    group.add_argument(
        "--num-of-sequences",
        type=int,
        metavar="N",
        help="open loop: sequences open at a time (default: 4); in a closed loop, the concurrency",
    )
    group.add_argument(
        "--sequence-length",
        type=int,
        metavar="N",
        help="requests per sequence (default: 20, or the number of steps in the data file)",
    )
    group.add_argument(
        "--sequence-length-variation",
        type=float,
        metavar="PERCENT",
        help="variation of sequence lengths (default: 20)",
    )
    group.add_argument(
        "--sequence-id-range",
        type=id_range,
        metavar="START[:END]",
        help="sequence ids, END excluded (default: from 1)",
    )


def _encryption(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("encryption (for HTTP, -u https://… enables it)")
    group.add_argument(
        "--ssl-grpc-use-ssl",
        type=truth,
        nargs="?",
        const=True,
        metavar="true|false",
        help="gRPC over TLS",
    )
    for name, text in (
        ("--ssl-grpc-root-certifications-file", "trusted certificates, PEM"),
        ("--ssl-grpc-private-key-file", "client key, PEM"),
        ("--ssl-grpc-certificate-chain-file", "client certificate, PEM"),
        ("--ssl-https-ca-certificates-file", "trusted certificates, PEM"),
        ("--ssl-https-client-certificate-file", "client certificate, PEM"),
        ("--ssl-https-private-key-file", "client key, PEM"),
    ):
        group.add_argument(name, metavar="FILE", help=text)
    group.add_argument(
        "--ssl-https-verify-peer",
        type=int,
        choices=(0, 1),
        help="0 accepts any certificate (default: 1)",
    )
    group.add_argument(
        "--ssl-https-verify-host",
        type=int,
        choices=(0, 1, 2),
        help="0 accepts a certificate for any host name (default: 2)",
    )


def _reports(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reports")
    group.add_argument(
        "-f",
        dest="csv",
        type=Path,
        metavar="FILE",
        help="write a CSV table; perf_analyzer's columns come first",
    )
    group.add_argument(
        "--json", type=Path, metavar="FILE", help="write all results as JSON, for --report"
    )
    group.add_argument(
        "-o",
        "--html",
        type=Path,
        metavar="FILE",
        help="write a report with plots as one self-contained file",
    )
    group.add_argument(
        "--report",
        type=Path,
        nargs="+",
        metavar="JSON",
        help="send no load; compare earlier results in one report (-o)",
    )
    group.add_argument(
        "--no-live", action="store_true", help="print plain lines even in a terminal"
    )


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options given on the command line by name; all others keep their defaults."""
    not_options = {
        "csv", "json", "html", "report", "no_live", "ignored", "model_name", "service_kind",
    }  # fmt: skip
    return {
        name: value
        for name, value in vars(arguments).items()
        if value is not None and name not in not_options
    }


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
