"""The command `tritonpy bench`. Heavy modules are imported when it runs."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from typing import ClassVar

from tritonpy import Command, StartupError
from tritonpy_bench.flags import add_flags, given_options

FAILED, USAGE = 1, 2
COMMON_OPTIONS = {
    "-u": "server address (default: localhost:8000, for gRPC localhost:8001)",
    "-i": "protocol (default: http)",
    "--streaming": "gRPC: use streams (required for decoupled models); language models: stream",
    "--concurrency-range": "closed loop: requests in flight (default: 1)",
    "--request-rate-range": "open loop: requests per second",
    "--endpoint-type": "measure a language model: chat, completions, embeddings, …",
    "--isl": "language models: tokens of a prompt (default: 128)",
    "--osl": "language models: tokens of a response (default: 64)",
    "-l": "stop when this latency is exceeded",
    "-b": "batch size of every request (default: 1)",
    "--shape": "shape of an input with variable dimensions",
    "--input-data": "random (default), zero, a JSON file, or a folder",
    "--shared-memory": "pass tensors in shared memory (default: none)",
    "--json": "write all results as JSON, for --report",
    "-o": "write a report with plots",
    "--report": "send no load; compare earlier results (-o)",
}


class BenchCommand(Command):
    """Generate load for a server of the v2 inference protocol and report its performance.

    tritonpy bench MODEL --concurrency-range 1:16:5 -o report.html

    measures a model on the server at localhost:8000 with 1, 6, 11 and 16 requests in flight.

    tritonpy bench MODEL -i grpc -u HOST:8001 --request-rate-range 500 --request-distribution
    poisson

    sends 500 requests per second, independent of the server's responses. Each latency is measured
    from the time when the request was due.

    tritonpy bench MODEL --endpoint-type chat --streaming --concurrency-range 1:9:4 -o report.html

    measures a language model on OpenAI's API: first token, time per token, tokens per second.

    tritonpy bench --report before.json after.json -o both.html

    compares earlier results (--json).

    The exit status is 0 on success and 2 for an invalid command line. It is 1 if every request of a
    level failed, no level kept --latency-threshold, or the server cannot be reached.
    """

    usage_status: ClassVar[int] = USAGE
    common_options: ClassVar[Mapping[str, str]] = COMMON_OPTIONS

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the flags."""
        parser.usage = "tritonpy bench [MODEL] [options]"
        add_flags(parser)

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the benchmark and return the exit status.

        Raises StartupError if no server answers.
        """
        from tritonpy_load_generator.options import BadUsage

        try:
            if arguments.report:
                return _compare(arguments)
            if arguments.endpoint_type or arguments.service_kind:
                return _measure_generation(arguments)
            return _measure(arguments)
        except BadUsage as error:
            sys.stderr.write(f"error: {error}\n")
            return USAGE


def _measure(arguments: argparse.Namespace) -> int:
    import asyncio

    from tritonpy_bench.options import check_options, make_options
    from tritonpy_bench.report.report_files import check_output_paths, write_reports
    from tritonpy_bench.report.view_selection import choose_view
    from tritonpy_bench.session import run_benchmark

    options = make_options(given_options(arguments), arguments.model_name)
    check_options(options)
    check_output_paths(arguments)
    command = f"tritonpy bench {shlex.join(sys.argv[2:])}"
    result = asyncio.run(run_benchmark(options, command, choose_view(options, arguments.no_live)))
    write_reports(arguments, result)
    if result.trouble:
        sys.stderr.write(f"error: {result.trouble}\n")
    failed = (
        result.trouble
        or any(not level.requests for level in result.levels)
        or not any(level.kept for level in result.levels)
    )
    return FAILED if failed else 0


def _measure_generation(arguments: argparse.Namespace) -> int:
    from tritonpy_bench.generation.benchmark import run_generation
    from tritonpy_bench.generation.options import make_generation_options
    from tritonpy_bench.report.report_files import check_output_paths

    named = {"endpoint_type": "chat"} | given_options(arguments)
    options = make_generation_options(named, arguments.model_name)
    check_output_paths(arguments)
    return run_generation(options, arguments, f"tritonpy bench {shlex.join(sys.argv[2:])}")


def _compare(arguments: argparse.Namespace) -> int:
    from tritonpy_bench.generation.report import is_generation_result, read_json
    from tritonpy_bench.generation.report import write_html as write_generation_html
    from tritonpy_bench.report.html import write_html
    from tritonpy_bench.report.result import read_results
    from tritonpy_load_generator.options import BadUsage

    if arguments.html is None:
        raise BadUsage("--report needs an output file: -o report.html")
    of_generation = [is_generation_result(path) for path in arguments.report]
    if any(of_generation) and not all(of_generation):
        raise BadUsage("--report cannot compare language models with other models")
    try:
        if all(of_generation):
            write_generation_html(arguments.html, [read_json(path) for path in arguments.report])
        else:
            write_html(arguments.html, read_results(arguments.report))
    except OSError as error:
        raise StartupError(f"{arguments.html} cannot be written: {error}") from error
    return 0
