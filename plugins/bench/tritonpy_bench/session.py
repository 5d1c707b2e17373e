"""One benchmark from its options to its result."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from tritonpy import StartupError, __version__
from tritonpy_bench.client.pool import ClientPool
from tritonpy_bench.figures.snapshot import Snapshot
from tritonpy_bench.inputs.corpus import make_corpus
from tritonpy_bench.load.arrivals import read_intervals
from tritonpy_bench.measuring import Measuring, Readings
from tritonpy_bench.options import BadUsage, BenchOptions
from tritonpy_bench.report.result import FORMAT, LevelResult, Result
from tritonpy_bench.summing_up import level_result
from tritonpy_bench.sweep import Outcome, next_level
from tritonpy_bench.target.control import Control
from tritonpy_bench.target.describing import describe, open_control, readings
from tritonpy_bench.target.facts import ModelFacts, TargetFacts


class View(Protocol):
    """Who watches while it runs."""

    def begin(self, facts: TargetFacts, notes: Sequence[str]) -> None:
        """The server answered, and the load is about to begin."""

    def look(self, level: float, window: int, look: Snapshot) -> None:
        """Something was counted; window 0 warms up."""

    def measured(self, result: LevelResult) -> None:
        """A level is done."""

    def end(self) -> None:
        """No more will come."""


async def run_benchmark(options: BenchOptions, command: str, view: View) -> Result:
    """Measure every level and return the result; Ctrl-C ends it with what was measured so far.

    Raises BadUsage for what cannot be sent, StartupError where the server does not answer.
    """
    control = open_control(options)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        facts = await asyncio.to_thread(describe, control, options.model, options.model_version)
        _check(options, facts)
        notes = _notes(options, facts, await asyncio.to_thread(readings, control, facts.model))
        view.begin(facts, notes)
        with _interruption() as interrupted:
            levels: list[LevelResult] = []
            trouble = await _levels(options, facts, control, view, interrupted, levels)
    finally:
        view.end()
        control.close()
    return _result(options, facts, command, started, notes, levels, trouble)


async def _levels(
    options: BenchOptions,
    facts: TargetFacts,
    control: Control,
    view: View,
    interrupted: asyncio.Event,
    results: list[LevelResult],
) -> str:
    """Measure level after level into `results`; return what ended it before its time. Raises StartupError where nothing was measured."""
    outcomes: list[Outcome] = []
    read = partial(_readings, control, facts.model, options.bls_composing_models)
    batch = options.batch if facts.model.max_batch_size else 1
    async with ClientPool(facts, options) as pool:
        while (
            not interrupted.is_set()
            and (level := next_level(options.levels, outcomes, options.binary_search)) is not None
        ):
            measuring = Measuring(options, pool, read, partial(view.look, level), interrupted)
            try:
                result = level_result(await measuring.level(level), options, batch)
            except StartupError as error:
                if not results:
                    raise
                return f"{level:g}: {error}"
            results.append(result)
            outcomes.append(Outcome(level, result.kept))
            view.measured(result)
    return ""


def _readings(control: Control, facts: ModelFacts, more: Sequence[str]) -> Readings | None:
    """Ask for statistics; a server that went away has none, and the requests tell that it did."""
    try:
        return readings(control, facts, more)
    except StartupError:
        return None


def _check(options: BenchOptions, facts: TargetFacts) -> None:
    """Find what cannot be sent before any process is started. Raises BadUsage."""
    model = facts.model
    if model.decoupled and not options.streaming:
        raise BadUsage(f"model '{model.name}' is decoupled, it answers on streams of gRPC: use -i grpc --streaming")
    if model.max_batch_size and options.batch > model.max_batch_size > 1:
        raise BadUsage(
            f"model '{model.name}' takes at most {model.max_batch_size} inferences in a request: use a smaller -b"
        )
    if options.request_intervals is not None:
        read_intervals(Path(options.request_intervals))
    make_corpus(model, options)


def _notes(options: BenchOptions, facts: TargetFacts, statistics: object) -> list[str]:
    """Return what a reader of the figures should know."""
    notes = []
    if statistics is None:
        notes.append("the server has no statistics: there is no breakdown of its time")
    if options.protocol == "http" and not facts.server.binary and options.input_tensor_format == "auto":
        notes.append("the server does not announce binary tensors: they travel as JSON")
    return notes


@contextlib.contextmanager
def _interruption() -> Iterator[asyncio.Event]:
    """Give an event that the first Ctrl-C (or SIGTERM) sets; the second one ends the process as ever."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        interrupted.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # not the main thread: nobody can press keys there
            loop.add_signal_handler(number, interrupt)
    try:
        yield interrupted
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):
                loop.remove_signal_handler(number)


def _result(
    options: BenchOptions,
    facts: TargetFacts,
    command: str,
    started: str,
    notes: Sequence[str],
    levels: Sequence[LevelResult],
    trouble: str,
) -> Result:
    model = facts.model
    return Result(
        format=FORMAT,
        tool=f"tritonpy {__version__}",
        started=started,
        command=command,
        protocol=options.protocol,
        url=options.url,
        server=f"{facts.server.name} {facts.server.version}".strip(),
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
