"""The run of one benchmark: from options to a result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from tritonpy import StartupError, __version__
from tritonpy_bench.level_summary import make_level_result
from tritonpy_bench.measurement import LevelMeasurement, Readings
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.report.result import FORMAT, LevelResult, Result
from tritonpy_bench.sweep import Outcome, next_level
from tritonpy_load_generator.client.pool import ClientPool
from tritonpy_load_generator.figures.snapshot import Snapshot
from tritonpy_load_generator.inputs.corpus import make_corpus
from tritonpy_load_generator.interruption import interruption
from tritonpy_load_generator.loops.arrivals import read_intervals
from tritonpy_load_generator.options import BadUsage
from tritonpy_load_generator.target.control import ControlClient
from tritonpy_load_generator.target.description import describe, open_control, read_statistics
from tritonpy_load_generator.target.metadata import ModelDescription, TargetDescription


class View(Protocol):
    """A display of the running benchmark."""

    def begin(self, target: TargetDescription, notes: Sequence[str]) -> None:
        """Show the target and notes before the load starts."""

    def update(self, level: float, window: int, snapshot: Snapshot) -> None:
        """Show a snapshot; window 0 is the warm-up."""

    def measured(self, result: LevelResult) -> None:
        """Show the result of a level."""

    def end(self) -> None:
        """Close the view."""


async def run_benchmark(options: BenchOptions, command: str, view: View) -> Result:
    """Measure every level and return the result. Ctrl-C ends it and keeps the results so far.

    Raises BadUsage if the requests cannot be made, StartupError if the server cannot be reached.
    """
    control = open_control(options)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        target = await asyncio.to_thread(describe, control, options.model, options.model_version)
        _check(options, target)
        notes = _notes(
            options, target, await asyncio.to_thread(read_statistics, control, target.model)
        )
        view.begin(target, notes)
        with interruption() as interrupted:
            levels: list[LevelResult] = []
            trouble = await _levels(options, target, control, view, interrupted, levels)
    finally:
        view.end()
        control.close()
    return _result(options, target, command, started, notes, levels, trouble)


async def _levels(
    options: BenchOptions,
    target: TargetDescription,
    control: ControlClient,
    view: View,
    interrupted: asyncio.Event,
    results: list[LevelResult],
) -> str:
    """Append each level's result to `results`; return the error that ended the sweep early, or "".

    Raises StartupError if not even the first level could be measured.
    """
    outcomes: list[Outcome] = []
    read = partial(_read_statistics, control, target.model, options.bls_composing_models)
    batch = options.batch if target.model.max_batch_size else 1
    async with ClientPool(target, options) as pool:
        while (
            not interrupted.is_set()
            and (level := next_level(options.levels, outcomes, options.binary_search)) is not None
        ):
            measurement = LevelMeasurement(
                options, pool, read, partial(view.update, level), interrupted
            )
            try:
                result = make_level_result(await measurement.level(level), options, batch)
            except StartupError as error:
                if not results:
                    raise
                return f"{level:g}: {error}"
            results.append(result)
            outcomes.append(Outcome(level, result.kept))
            view.measured(result)
    return ""


def _read_statistics(
    control: ControlClient, model: ModelDescription, more: Sequence[str]
) -> Readings | None:
    """Read the server's statistics. Return None if it is gone: failed requests report that."""
    try:
        return read_statistics(control, model, more)
    except StartupError:
        return None


def _check(options: BenchOptions, target: TargetDescription) -> None:
    """Raise BadUsage if the model cannot serve these requests, before any process starts."""
    model = target.model
    if model.decoupled and not options.streaming:
        raise BadUsage(
            f"model '{model.name}' is decoupled and responds on gRPC streams: "
            "use -i grpc --streaming"
        )
    if model.max_batch_size and options.batch > model.max_batch_size > 1:
        raise BadUsage(
            f"model '{model.name}' takes at most {model.max_batch_size} inferences in a request: "
            "use a smaller -b"
        )
    if options.request_intervals is not None:
        read_intervals(Path(options.request_intervals))
    make_corpus(model, options)


def _notes(options: BenchOptions, target: TargetDescription, statistics: object) -> list[str]:
    """Return limitations of the results that the reader must know."""
    notes = []
    if statistics is None:
        notes.append("the server has no statistics: no breakdown of its time is available")
    if (
        options.protocol == "http"
        and not target.server.binary
        and options.input_tensor_format == "auto"
    ):
        notes.append("the server does not announce binary tensors: tensors are sent as JSON")
    return notes


def _result(
    options: BenchOptions,
    target: TargetDescription,
    command: str,
    started: str,
    notes: Sequence[str],
    levels: Sequence[LevelResult],
    trouble: str,
) -> Result:
    model = target.model
    return Result(
        format=FORMAT,
        tool=f"tritonpy {__version__}",
        started=started,
        command=command,
        protocol=options.protocol,
        url=options.url,
        server=f"{target.server.name} {target.server.version}".strip(),
        model=model.name,
        version=model.version,
        batch=options.batch,
        streaming=options.streaming,
        decoupled=model.decoupled,
        sequence=model.sequence,
        percentile=options.percentile,
        latency_threshold_ms=options.latency_threshold,
        notes=tuple(notes),
        trouble=trouble,
        levels=tuple(levels),
    )
