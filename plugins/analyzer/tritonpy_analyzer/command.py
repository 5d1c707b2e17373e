"""The command `tritonpy analyze`. Heavy modules are imported when it runs."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tritonpy import Command, StartupError

if TYPE_CHECKING:
    from tritonpy_analyzer.study import Study

USAGE = 2
COMMON_OPTIONS = {
    "--model-repository": "serve models of this folder (default: models)",
    "-u": "analyze on this running server instead",
    "--slo": "constraint, such as p99<20ms or p99<20ms,rate>500; repeatable",
    "--memory": "memory limit of the model, such as 4GiB",
    "--minutes": "time of the analysis (default: 5)",
    "--maximize": "metric to maximize; repeatable (default: rate)",
    "--minimize": "metric to minimize; repeatable",
    "--scenario": "single-stream, multi-stream, server, offline",
    "--resume": "continue an analysis that was interrupted",
    "--write": "write the recommended settings to config.pbtxt",
    "-o": "write a report with charts",
    "--json": "print the result as JSON",
    "--report": "measure nothing; report the result of an earlier analysis",
}


class AnalyzeCommand(Command):
    """Find the best configuration of a model by measuring it.

    tritonpy analyze digits --slo 'p99<20ms' --minutes 5

    finds the batch size, instances and queue delay with which the model serves the most requests
    within the latency limit. It starts its own servers for the repository ./models. All
    configurations are measured in turns, so that other work on the machine does not decide.

    tritonpy analyze digits -u localhost:8000 --rate 200 --minimize p99

    analyzes on a running server at a fixed rate, and restores its configuration at the end.

    The metrics are rate, p50, p90, p95, p99, p99.9, mean, ttft, itl, memory.cpu, memory.gpu and
    errors. The exit status is 0 if a configuration keeps all constraints, 1 if none does, 2 for an
    invalid command line, and 3 if the machine is too busy to measure.
    """

    usage_status: ClassVar[int] = USAGE
    common_options: ClassVar[Mapping[str, str]] = COMMON_OPTIONS

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the flags."""
        parser.usage = "tritonpy analyze [MODEL...] [options]"
        add = parser.add_argument
        add("models", nargs="*", metavar="MODEL", help="the models that get requests")
        add("-f", "--file", type=Path, help="a configuration file of NVIDIA's Model Analyzer")
        add("--model-repository", default="", metavar="FOLDER", help="serve models of this folder")
        add("--config", default="", metavar="FILE", help="a server.yaml for the own servers")
        add("-u", "--url", default="", help="analyze on this running server")
        add("-i", "--protocol", choices=["http", "grpc"], default="http", help="protocol")
        add("--slo", action="append", default=[], help="constraint, such as p99<20ms; repeatable")
        add("--maximize", action="append", default=[], metavar="METRIC", help="repeatable")
        add("--minimize", action="append", default=[], metavar="METRIC", help="repeatable")
        add("--memory", default="", metavar="SIZE", help="memory limit of CPU and of GPU memory")
        add("--minutes", type=float, default=5.0, help="time of the analysis")
        add("--seed", type=int, default=1, help="equal seeds give equal searches")
        add(
            "--scenario",
            choices=["single-stream", "multi-stream", "server", "offline"],
            default="",
            help="a load of MLPerf",
        )
        add("--rate", type=float, default=0.0, help="fixed load: Poisson arrivals per second")
        add("--concurrency", type=int, default=0, help="fixed load: requests in flight")
        add("--mix", default="", metavar="A=3,B=1", help="ratio of the requests of several models")
        add("--max-batch-size", type=int, default=128, help="largest batch size to search")
        add("--max-instances", type=int, default=8, help="largest number of instances to search")
        add("--trials", type=int, default=0, help="measure at most this many configurations")
        add(
            "--bls-composing-models",
            default="",
            metavar="A,B",
            help="models that the model calls; they are searched, too",
        )
        add("--server-flag", action="append", default=[], help="flag of own servers; repeatable")
        add("--study", default="", metavar="FOLDER", help="where everything measured is kept")
        add("--resume", action="store_true", help="continue the analysis in the study's folder")
        add(
            "--allow-precision",
            type=float,
            default=0.0,
            metavar="SHARE",
            help="search lower precisions whose outputs differ by at most this share",
        )
        add("--yes-disturb", action="store_true", help="analyze although others use the server")
        add(
            "--ignore-load",
            action="store_true",
            help="count windows although other processes use this machine",
        )
        add("--client-processes", type=int, default=1, help="processes that generate the load")
        add("--input-data", action="append", default=[], help="as for tritonpy bench; repeatable")
        add("--shape", action="append", default=[], metavar="NAME:3,4", help="repeatable")
        add("--streaming", action="store_true", help="use gRPC streams")
        add("-H", "--header", action="append", default=[], metavar="NAME:VALUE", help="repeatable")
        _add_reports(parser)

    def run(self, arguments: argparse.Namespace) -> int:
        """Analyze and return the exit status.

        Raises StartupError if a server cannot be started or reached.
        """
        from tritonpy_load_generator.options import BadUsage

        try:
            study = _study(arguments)
            return _report(arguments, study)
        except BadUsage as error:
            sys.stderr.write(f"error: {error}\n")
            return USAGE


def _add_reports(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--write", action="store_true", help="write the settings, after showing the changes")
    add("--output", type=Path, metavar="FOLDER", help="write the changed files here instead")
    add("-o", "--html", type=Path, metavar="FILE", help="write a report with charts")
    add("--csv", type=Path, metavar="FILE", help="write CSV with Model Analyzer's columns")
    add("--json", action="store_true", help="print the result as JSON")
    add("--report", type=Path, metavar="STUDY", help="report an earlier result")


def _study(arguments: argparse.Namespace) -> Study:
    if arguments.report is not None:
        from tritonpy_analyzer.study import read_study

        return read_study(arguments.report)
    from tritonpy_analyzer.analysis import analyze
    from tritonpy_analyzer.progress import progress_view

    options = make_options(arguments)
    with progress_view(options.minutes * 60, sys.stderr) as view:
        return analyze(options, view)


def make_options(arguments: argparse.Namespace) -> Any:
    """Return the options of an analysis from the command line. Raises BadUsage."""
    import msgspec

    from tritonpy_analyzer.analysis import AnalysisOptions, check_options
    from tritonpy_load_generator.options import BadUsage

    named: dict[str, Any] = {
        "models": tuple(arguments.models),
        "repository": arguments.model_repository,
        "server_yaml": arguments.config,
        "url": arguments.url,
        "protocol": arguments.protocol,
        "slo": tuple(arguments.slo),
        "maximize": tuple(arguments.maximize),
        "minimize": tuple(arguments.minimize),
        "memory": arguments.memory,
        "minutes": arguments.minutes,
        "seed": arguments.seed,
        "scenario": arguments.scenario,
        "rate": arguments.rate,
        "concurrency": arguments.concurrency,
        "mix": dict(_pair(each, "=", "--mix") for each in _parts(arguments.mix)),
        "max_batch_size": arguments.max_batch_size,
        "max_instances": arguments.max_instances,
        "max_trials": arguments.trials,
        "composing_models": tuple(_parts(arguments.bls_composing_models)),
        "server_flags": tuple(arguments.server_flag),
        "folder": arguments.study,
        "resume": arguments.resume,
        "yes_disturb": arguments.yes_disturb,
        "allow_precision": arguments.allow_precision,
        "ignore_load": arguments.ignore_load,
        "client_processes": arguments.client_processes,
        "input_data": tuple(arguments.input_data) or ("random",),
        "shape": tuple(
            (name, tuple(int(dim) for dim in dims.split(",")))
            for name, dims in (_pair(each, ":", "--shape") for each in arguments.shape)
        ),
        "streaming": arguments.streaming,
        "headers": tuple(_pair(each, ":", "-H") for each in arguments.header),
    }
    if arguments.file is not None:
        from tritonpy_analyzer.model_analyzer_file import read_model_analyzer_file

        named, ignored = read_model_analyzer_file(arguments.file, named)
        if ignored:
            sys.stderr.write(f"note: without meaning here: {', '.join(ignored)}\n")
    _set_repository(named)
    named["command"] = f"tritonpy analyze {shlex.join(sys.argv[2:])}"
    try:
        options = msgspec.convert(named, AnalysisOptions, strict=False)
    except msgspec.ValidationError as error:
        raise BadUsage(str(error)) from error
    check_options(options)
    return options


def _set_repository(named: dict[str, Any]) -> None:
    """Use the folder `models` if no server is named. Raises BadUsage if it does not exist."""
    from tritonpy_load_generator.options import BadUsage

    if not (named["repository"] or named["server_yaml"] or named["url"]):
        named["repository"] = "models"
    if named["repository"] and not Path(named["repository"]).is_dir():
        raise BadUsage(
            f"there is no folder '{named['repository']}': give --model-repository, or -u for a "
            "running server"
        )


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _pair(text: str, separator: str, flag: str) -> tuple[str, str]:
    from tritonpy_load_generator.options import BadUsage

    name, found, value = text.partition(separator)
    if not found or not name:
        raise BadUsage(f"{flag} {text}: expected NAME{separator}VALUE")
    return name.strip(), value.strip()


def _report(arguments: argparse.Namespace, study: Study) -> int:
    from tritonpy_analyzer.report.text import study_text

    if arguments.json:
        import msgspec

        sys.stdout.write(msgspec.json.format(msgspec.json.encode(study), indent=2).decode() + "\n")
    else:
        sys.stdout.write(study_text(study))
    try:
        if arguments.html is not None:
            from tritonpy_analyzer.report.html import write_html

            write_html(arguments.html, study)
        if arguments.csv is not None:
            from tritonpy_analyzer.report.csv_report import write_csv

            write_csv(arguments.csv, study)
    except OSError as error:
        raise StartupError(f"the report cannot be written: {error}") from error
    if arguments.write or arguments.output is not None:
        from tritonpy_analyzer.config_edits import write_settings

        repository = arguments.model_repository or "models"
        write_settings(study, Path(repository), arguments.output, sys.stderr)
    return study.exit_status
