"""The command `tritonpy batch`. Heavy modules are imported when it runs."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tritonpy import Command, StartupError

USAGE = 2
INTERRUPTED = 130
COMMON_OPTIONS = {
    "--input": "file, folder, pattern or URL; repeatable",
    "--output": "folder or URL for the results",
    "--model-repository": "serve models of this folder (default: models)",
    "-u": "send requests to this running server instead",
    "--map": "feed an input from columns: INPUT=COLUMN or INPUT=A,B,C; repeatable",
    "--keep": "columns to copy to the output: A,B or *",
    "--top": "write the N best classes instead of all scores",
    "--output-format": "parquet, jsonl, npy, npz",
    "--nulls": "null values: fail, skip, default",
    "--on-error": "rows that fail: skip, fail",
    "--dry-run": "show the mapping and three rows, write nothing",
    "--force": "discard the results of another job in the folder",
    "-o": "write a report with a chart",
}


class BatchCommand(Command):
    """Run a model over files, exactly once, with resume after a crash.

    tritonpy batch digits --input 'scans/*.parquet' --output out --keep id

    runs the model in this process over all rows and writes one part per shard of the input. The
    same command again continues where a run ended, also after kill -9. Several processes with the
    same command share the work.

    tritonpy batch digits --input scans.parquet --output out --dry-run

    shows which columns feed which inputs, the results of three rows, and an estimate.

    The exit status is 0 if all rows have a result or an error within --max-errors, 1 if the job
    failed, 2 for an invalid command line, and 130 after Ctrl-C.
    """

    usage_status: ClassVar[int] = USAGE
    common_options: ClassVar[Mapping[str, str]] = COMMON_OPTIONS

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the flags."""
        parser.usage = "tritonpy batch MODEL --input URL --output FOLDER [options]"
        add = parser.add_argument
        add("model", metavar="MODEL", help="the model; with OpenAI requests, the model to load")
        add("--model-version", type=int, default=-1, metavar="N", help="default: the newest")
        add("--input", action="append", default=[], metavar="URL", help="repeatable")
        add("--output", default="", metavar="FOLDER", help="a folder or URL")
        add("--model-repository", default="", metavar="FOLDER", help="serve models of this folder")
        add("--config", default="", metavar="FILE", help="a server.yaml with the repository")
        add("-u", "--url", default="", help="send requests to this running server, over HTTP")
        add("-H", "--header", action="append", default=[], metavar="NAME:VALUE", help="repeatable")
        add("--ca-file", default="", metavar="FILE", help="certificates to verify the server with")
        add("--input-format", default="", metavar="NAME", help="default: by the file's suffix")
        add(
            "--output-format",
            choices=["parquet", "jsonl", "npy", "npz"],
            default="parquet",
            help="default: parquet",
        )
        add("--map", action="append", default=[], metavar="INPUT=COLUMN", help="repeatable")
        add("--keep", action="append", default=[], metavar="A,B", help="columns to copy, or *")
        add("--outputs", action="append", default=[], metavar="A,B", help="default: all outputs")
        add("--top", type=int, default=0, metavar="N", help="the N best classes of each output")
        add("--nulls", choices=["fail", "skip", "default"], default="fail", help="default: fail")
        add("--allow-rounding", action="store_true", help="round numbers to the type of an input")
        add(
            "--strings",
            choices=["text", "binary"],
            default="text",
            help="what outputs of type BYTES are",
        )
        add(
            "--image-scale",
            choices=["none", "unit", "inception", "imagenet"],
            default="unit",
            help="how pixels of 0 to 255 are scaled (default: to 0 to 1)",
        )
        _add_execution(parser)

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the job and return the exit status.

        Raises StartupError if the model cannot be loaded, and JobFailed if the job ends early.
        """
        from tritonpy_batch.options import InvalidJob

        signal.signal(signal.SIGTERM, _interrupt)
        try:
            return _run(arguments)
        except InvalidJob as error:
            sys.stderr.write(f"error: {error}\n")
            return USAGE
        except KeyboardInterrupt:
            sys.stderr.write(
                "interrupted: complete parts are kept; continue with\n"
                f"  tritonpy batch {shlex.join(sys.argv[2:])}\n"
            )
            return INTERRUPTED


def _add_execution(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--batch-size", type=int, default=0, metavar="N", help="default: the model's largest")
    add("--concurrency", type=int, default=0, metavar="N", help="default: found while it runs")
    add("--memory", default="1GiB", metavar="SIZE", help="limit for rows in memory (default: 1GiB)")
    add("--shard-size", default="64MiB", metavar="SIZE", help="input per part (default: 64MiB)")
    add("--shard", default="1/1", metavar="I/N", help="only every N-th part, for N machines")
    add("--on-error", choices=["skip", "fail"], default="skip", help="default: skip")
    add("--max-errors", default="1%", metavar="N", help="rows, or a share (default: 1%%)")
    add("--retries", type=int, default=3, metavar="N", help="of a failed request (default: 3)")
    add(
        "--reconnect-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="how long an unreachable server is waited for (default: 60)",
    )
    add("--lease-seconds", type=float, default=60.0, metavar="S", help="default: 60")
    add("--force", action="store_true", help="discard the results of another job in the folder")
    add("--dry-run", action="store_true", help="show the mapping and three rows, write nothing")
    add("--progress", choices=["auto", "json", "none"], default="auto", help="on standard error")
    add("-o", "--html", type=Path, metavar="FILE", help="write a report with a chart")
    add("--json", action="store_true", help="print the summary as JSON")
    add("--ray", default="", metavar="ADDRESS", help="share the work over a Ray cluster")
    add("--ray-tasks", type=int, default=0, metavar="N", help="default: one per node")


def _run(arguments: argparse.Namespace) -> int:
    options = make_options(arguments)
    if arguments.dry_run:
        from tritonpy_batch.dry_run import dry_run

        sys.stdout.write(dry_run(options))
        return 0
    from tritonpy_batch.progress import progress_view
    from tritonpy_batch.summary import summary_text

    with progress_view(arguments.progress, sys.stderr) as view:
        if arguments.ray:
            from tritonpy_batch.adapters import run_on_ray

            summary = run_on_ray(options, arguments.ray, arguments.ray_tasks, view)
        else:
            from tritonpy_batch.job import run_batch

            summary = run_batch(options, view)
    if arguments.html is not None:
        from tritonpy_batch.report import write_report

        try:
            write_report(arguments.html, summary)
        except OSError as error:
            raise StartupError(f"the report cannot be written: {error}") from error
    if arguments.json:
        import msgspec

        sys.stdout.write(
            msgspec.json.format(msgspec.json.encode(summary), indent=2).decode() + "\n"
        )
    else:
        sys.stdout.write(summary_text(summary))
    return 0


def make_options(arguments: argparse.Namespace) -> Any:
    """Return the options of a job from the command line. Raises InvalidJob."""
    import msgspec

    from tritonpy_batch.options import BatchOptions, InvalidJob, check_options, parse_size

    named: dict[str, Any] = {
        "model": arguments.model,
        "version": arguments.model_version,
        "inputs": tuple(arguments.input),
        "output": arguments.output,
        "repository": arguments.model_repository,
        "server_yaml": arguments.config,
        "url": arguments.url,
        "headers": tuple(_pair(each, ":", "-H") for each in arguments.header),
        "ca_file": arguments.ca_file,
        "input_format": arguments.input_format,
        "output_format": arguments.output_format,
        "columns": tuple(
            (name, tuple(_parts([columns])))
            for name, columns in (_pair(each, "=", "--map") for each in arguments.map)
        ),
        "keep": tuple(_parts(arguments.keep)),
        "outputs": tuple(_parts(arguments.outputs)),
        "top": arguments.top,
        "nulls": arguments.nulls,
        "allow_rounding": arguments.allow_rounding,
        "strings": arguments.strings,
        "image_scale": arguments.image_scale,
        "batch_size": arguments.batch_size,
        "concurrency": arguments.concurrency,
        "memory": parse_size(arguments.memory),
        "shard_bytes": parse_size(arguments.shard_size),
        "share": _share(arguments.shard),
        "on_error": arguments.on_error,
        "max_errors": arguments.max_errors,
        "retries": arguments.retries,
        "reconnect_s": arguments.reconnect_seconds,
        "lease_s": arguments.lease_seconds,
        "force": arguments.force,
        "command": f"tritonpy batch {shlex.join(sys.argv[2:])}",
    }
    try:
        options = msgspec.convert(named, BatchOptions, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidJob(str(error)) from error
    check_options(options)
    return options


def _share(text: str) -> tuple[int, int]:
    from tritonpy_batch.options import InvalidJob

    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit()):
        raise InvalidJob(f"--shard {text}: expected I/N, such as 3/8")
    return int(number), int(count)


def _parts(texts: list[str]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def _pair(text: str, separator: str, flag: str) -> tuple[str, str]:
    from tritonpy_batch.options import InvalidJob

    name, found, value = text.partition(separator)
    if not (found and name.strip() and value.strip()):
        raise InvalidJob(f"{flag} {text}: expected NAME{separator}VALUE")
    return name.strip(), value.strip()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
