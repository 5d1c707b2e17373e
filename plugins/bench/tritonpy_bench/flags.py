"""The flags of `tritonpy bench`: perf_analyzer's names where it has one. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tritonpy_bench.readers import (
    header,
    id_range,
    load_range,
    parameter,
    shape,
    truth,
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add all of them."""
    parser.add_argument("model_name", nargs="?", metavar="MODEL", help="the model to load")
    for add in (_server, _load, _measurement, _inputs, _sequences, _encryption, _reports):
        add(parser)


def _server(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("server and model")
    group.add_argument("-m", dest="model", metavar="MODEL", help="the same as the argument MODEL")
    group.add_argument(
        "-x", dest="model_version", metavar="VERSION", help="version of the model (default: the server's choice)"
    )
    group.add_argument(
        "-u", dest="url", metavar="HOST:PORT", help="the server (default: localhost:8000, for gRPC localhost:8001)"
    )
    group.add_argument("-i", dest="protocol", choices=("http", "grpc"), type=str.lower, help="protocol (default: http)")
    group.add_argument(
        "-H",
        dest="headers",
        action="append",
        type=header,
        metavar="NAME:VALUE",
        help="a header of every request; over gRPC it is metadata",
    )
    group.add_argument(
        "--streaming",
        action="store_const",
        const=True,
        help="gRPC: requests travel on streams; decoupled models need it",
    )
    group.add_argument(
        "--grpc-compression-algorithm", choices=("none", "gzip", "deflate"), help="of gRPC requests (default: none)"
    )
    group.add_argument(
        "--bls-composing-models",
        type=_names,
        metavar="NAME[:VERSION],…",
        help="models whose statistics are shown too, because the model calls them",
    )


def _load(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("load")
    group.add_argument(
        "--concurrency-range",
        type=load_range,
        metavar="START[:END[:STEP]]",
        help="closed loop: so many requests are always in flight (default: 1); END 0: until --latency-threshold is missed",
    )
    group.add_argument(
        "--request-rate-range",
        type=load_range,
        metavar="START[:END[:STEP]]",
        help="open loop: so many requests per second, whatever the server does; latency counts from when a request was due",
    )
    group.add_argument(
        "--request-distribution",
        choices=("constant", "poisson"),
        help="distances between the requests of an open loop (default: constant)",
    )
    group.add_argument(
        "--request-intervals",
        metavar="FILE",
        help="open loop with the distances in this file: microseconds, one a line, over and over",
    )
    group.add_argument(
        "--binary-search",
        action="store_const",
        const=True,
        help="look for the highest level within --latency-threshold, to one STEP",
    )
    group.add_argument(
        "--max-in-flight",
        type=int,
        metavar="N",
        help="open loop: most requests in flight; what is due beyond waits, and its latency runs (default: 512)",
    )
    group.add_argument(
        "--connections",
        type=int,
        metavar="N",
        help="gRPC: connections (and streams) that are shared (default: one per request in flight, 8 at most); HTTP has one per request in flight",
    )
    group.add_argument("--client-processes", type=int, metavar="N", help="processes that make the load (default: 1)")
    group.add_argument("--seed", type=int, metavar="N", help="of everything that is random (default: 1)")
    group.add_argument(
        "-a",
        "--async",
        "--sync",
        "--serial-sequences",
        dest="ignored",
        action="store_true",
        help="accepted and without effect: the client is always asynchronous, a sequence has one request in flight",
    )


def _measurement(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("measurement")
    group.add_argument(
        "-p",
        "--measurement-interval",
        type=float,
        metavar="MS",
        help="length of a window in milliseconds (default: 5000)",
    )
    group.add_argument(
        "--measurement-mode",
        choices=("time_windows", "count_windows"),
        help="windows end after their time, or when so many requests were answered too (default: time_windows)",
    )
    group.add_argument(
        "--measurement-request-count", type=int, metavar="N", help="requests of a window of count_windows (default: 50)"
    )
    group.add_argument(
        "-s",
        "--stability-percentage",
        type=float,
        metavar="PERCENT",
        help="the last three windows may differ by this in rate and latency (default: 10)",
    )
    group.add_argument("-r", "--max-trials", type=int, metavar="N", help="most windows of a level (default: 10)")
    group.add_argument(
        "--percentile",
        type=int,
        metavar="P",
        help="the latency that stability and threshold look at (default: the mean)",
    )
    group.add_argument(
        "-l",
        "--latency-threshold",
        type=float,
        metavar="MS",
        help="end the search where this latency is exceeded; exit status 1 when no level kept it",
    )
    group.add_argument(
        "--request-count", type=int, metavar="N", help="measure exactly so many requests per level, in one window"
    )
    group.add_argument(
        "--warmup-request-count",
        type=int,
        metavar="N",
        help="requests of each level that are not counted, before those that are",
    )


def _inputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("inputs")
    group.add_argument("-b", dest="batch", type=int, metavar="N", help="batch size of every request (default: 1)")
    group.add_argument(
        "--shape",
        action="append",
        type=shape,
        metavar="INPUT:DIM,…",
        help="shape of an input whose dimensions vary, without the batch",
    )
    group.add_argument(
        "--input-data",
        action="append",
        metavar="random|zero|FILE|FOLDER",
        help="random (default), zero, a JSON file in perf_analyzer's format (several are appended), a folder with one file per input",
    )
    group.add_argument("--string-length", type=int, metavar="N", help="length of random strings (default: 128)")
    group.add_argument("--string-data", metavar="TEXT", help="every string is this one")
    group.add_argument(
        "--request-parameter",
        action="append",
        type=parameter,
        metavar="NAME:VALUE:TYPE",
        help="a parameter of every request; TYPE is string, int, float or bool",
    )
    group.add_argument(
        "--input-tensor-format",
        choices=("auto", "binary", "json"),
        help="HTTP: how inputs travel (default: binary where the server says that it can)",
    )
    group.add_argument(
        "--output-tensor-format",
        choices=("auto", "binary", "json"),
        help="HTTP: how outputs travel (default: as --input-tensor-format)",
    )
    group.add_argument(
        "--shared-memory", choices=("none", "system"), help="tensors stay in system shared memory (default: none)"
    )
    group.add_argument(
        "--output-shared-memory-size",
        type=int,
        metavar="BYTES",
        help="for outputs of strings or with dimensions that vary, per element of the batch (default: 102400)",
    )


def _sequences(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sequences")
    group.add_argument(
        "--num-of-sequences",
        type=int,
        metavar="N",
        help="open loop: sequences that are open at a time (default: 4); in a closed loop it is the concurrency",
    )
    group.add_argument(
        "--sequence-length",
        type=int,
        metavar="N",
        help="requests of a sequence (default: 20, or as many as the data of a file has)",
    )
    group.add_argument(
        "--sequence-length-variation", type=float, metavar="PERCENT", help="lengths differ by so much (default: 20)"
    )
    group.add_argument(
        "--sequence-id-range",
        type=id_range,
        metavar="START[:END]",
        help="ids that are used, END excluded (default: from 1 on)",
    )


def _encryption(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("encryption (HTTP also by -u https://…)")
    group.add_argument(
        "--ssl-grpc-use-ssl", type=truth, nargs="?", const=True, metavar="true|false", help="gRPC over TLS"
    )
    for name, text in (
        ("--ssl-grpc-root-certifications-file", "who is trusted, PEM"),
        ("--ssl-grpc-private-key-file", "key of the client, PEM"),
        ("--ssl-grpc-certificate-chain-file", "certificate of the client, PEM"),
        ("--ssl-https-ca-certificates-file", "who is trusted, PEM"),
        ("--ssl-https-client-certificate-file", "certificate of the client, PEM"),
        ("--ssl-https-private-key-file", "key of the client, PEM"),
    ):
        group.add_argument(name, metavar="FILE", help=text)
    group.add_argument(
        "--ssl-https-verify-peer", type=int, choices=(0, 1), help="0: accept any certificate (default: 1)"
    )
    group.add_argument(
        "--ssl-https-verify-host", type=int, choices=(0, 1, 2), help="0: accept a certificate of any name (default: 2)"
    )


def _reports(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reports")
    group.add_argument(
        "-f", dest="csv", type=Path, metavar="FILE", help="write a CSV table, with perf_analyzer's columns first"
    )
    group.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON; --report reads it again")
    group.add_argument(
        "-o", "--html", type=Path, metavar="FILE", help="write a report with plots, one file that works offline"
    )
    group.add_argument(
        "--report",
        type=Path,
        nargs="+",
        metavar="JSON",
        help="load nothing: compare earlier results in one report (-o)",
    )
    group.add_argument("--no-live", action="store_true", help="plain lines in a terminal too")


def given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what was given of the options, by their names; what was not keeps its default."""
    kept = {"csv", "json", "html", "report", "no_live", "ignored", "model_name"}
    return {name: value for name, value in vars(arguments).items() if value is not None and name not in kept}


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
